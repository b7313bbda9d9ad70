/*
 * The time that the kernel needs for one whole file.
 *
 *     file_floor FILE TIMES
 */
#include "floor.h"

int
main(int count, char **words)
{
	double		start;
	long		times;

	if (count != 3)
		errx(2, "usage: file_floor FILE TIMES");
	times = atol(words[2]);
	start = now();
	for (long i = 0; i < times; i++)
		if (!slurp(words[1], 1 << 16))
			errx(1, "no file %s", words[1]);
	print_cost(start, times);
	return 0;
}
