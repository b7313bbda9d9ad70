# A note a line, as Markdown or HTML.

BEGIN {
    if (as == "html")
        print "<ul>"
}

{
    print as == "html" ? "<li>" html($0) "</li>" : "- " $0
}

END {
    if (as == "html")
        print "</ul>"
}
