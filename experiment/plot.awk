# Okabe and Ito's, which colour-blind people tell apart; the lightest are left out.
function colour(i) {
    split("#D55E00 #0072B2 #009E73 #CC79A7 #000000 #56B4E9", colours, " ")
    return colours[(i - 1) % 6 + 1]
}

# As gnuplot reads strings.
function quoted(text) {
    gsub(/["\\]/, "", text)
    return "\"" text "\""
}

# What is drawn, and of what.
function print_heading(text, of) {
    printf "set label 1001 %s at screen 0.015, screen 0.945 left font \",24\" textcolor rgb \"#000000\"\n", quoted(text)
    printf "set label 1002 %s at screen 0.015, screen 0.885 left font \",14\" textcolor rgb \"#555555\"\n", quoted(of)
}
