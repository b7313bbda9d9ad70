# Figures and names as they are shown.

function page_words(name) {
    if (name == "thp")
        return "transparent huge pages"
    match(name, /^[0-9]+/)
    return substr(name, 1, RLENGTH) " " substr(name, RLENGTH + 1) " pages"
}

# Three digits.
function bytes_words(bytes,    unit) {
    split("bytes kB MB GB TB", units, " ")
    for (unit = 1; bytes >= 1000 && unit < 5; unit++)
        bytes /= 1024
    return sprintf(unit == 1 || bytes >= 99.95 ? "%.0f %s" : bytes >= 9.995 ? "%.1f %s" : "%.2f %s", bytes, units[unit])
}

function number_words(number,    text, head) {
    text = sprintf("%.0f", number)
    head = ""
    while (length(text) > 3) {
        head = "," substr(text, length(text) - 2) head
        text = substr(text, 1, length(text) - 3)
    }
    return text head
}

function percent_words(ratio) {
    return sprintf("%+.1f %%", 100 * (ratio - 1))
}

function html(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    return text
}
