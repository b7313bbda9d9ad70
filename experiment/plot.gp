# What the plots share.
set terminal svg size 1100,600 fixed font "sans-serif,18" background "white"
set encoding utf8
set termoption noenhanced
set border 3 linecolor rgb "#555555"
set tics nomirror textcolor rgb "#333333"
set grid y linecolor rgb "#dddddd" linetype 1 linewidth 1
unset key
set tmargin 4.5
