# Sorts list[1] to list[n], and gives the middle.
function median(list, n,    i, j, x) {
    for (i = 2; i <= n; i++) {
        x = list[i]
        for (j = i - 1; j > 0 && list[j] > x; j--)
            list[j + 1] = list[j]
        list[j + 1] = x
    }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
