# Between which two of n sorted values the true median lies with 95 %, whatever their distribution:
# as many lie below it as coins show heads. The rank from either end; 0 where n is too small.
function interval_rank(n,    rank, tail, term) {
    term = 0.5 ^ n
    for (rank = 0; (tail += term) <= 0.025; rank++)
        term *= (n - rank) / (rank + 1)
    return rank
}
