/*
 * The time that the kernel needs for hugeinfo_backends: reads the same files of the same processes,
 * the first FILES of the four below. The function reads two. The view reads two, or all four if its
 * OOM columns are selected.
 *
 *     backends_floor POSTMASTER TIMES FILES
 *
 * Has to read the same files as crates/host/src/linux/process: tools/bench/backends compares the
 * number of reads.
 */
#include "floor.h"

static const char *const files[] = {"stat", "status", "oom_score", "oom_score_adj"};

enum {
	/* stat contains the PID of the parent */
	PARENT = 1,
	MOST = sizeof files / sizeof *files
};

static char pids[1 << 17];

static void
process(const char *pid, size_t wanted)
{
	int			directory = open(named("/proc/%s", pid), O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		return;
	for (size_t i = 0; i < wanted; i++)
	{
		int			file = openat(directory, files[i], O_RDONLY | O_CLOEXEC);
		ssize_t		got;

		if (file < 0)
			continue;
		/* One read returns the whole file. */
		got = read(file, buffer, 4096);
		reads++;
		if (got == 4096)
			errx(1, "/proc/%s/%s is larger than expected", pid, files[i]);
		close(file);
	}
	close(directory);
}

int
main(int count, char **words)
{
	double		start;
	long		times;
	size_t		wanted;

	if (count != 4 || (wanted = strtoul(words[3], NULL, 10)) < PARENT || wanted > MOST)
		errx(2, "usage: backends_floor POSTMASTER TIMES FILES");
	times = atol(words[2]);
	start = now();
	for (long i = 0; i < times; i++)
	{
		char	   *rest = pids;
		char	   *pid;

		process("self", PARENT);
		slurp(named("/proc/%s/task/%s/children", words[1], words[1]), 4096);
		memcpy(pids, buffer, sizeof pids);
		process(words[1], wanted);
		while ((pid = strsep(&rest, " ")))
			if (*pid)
				process(pid, wanted);
	}
	print_cost(start, times);
	return 0;
}
