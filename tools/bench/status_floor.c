/*
 * The time that the kernel needs for one hugeinfo_status: makes the same system calls on the same
 * files, and ignores their contents.
 *
 *     status_floor PID ADDRESS TIMES
 *
 * PID is the postmaster, and ADDRESS a hexadecimal address inside its main segment. The output is
 * explained in floor.h. Has to read the same files as few in src/facts.rs: tools/bench/status
 * compares the number of reads. Needs PROCMAP_QUERY (Linux 6.11).
 */
#include "floor.h"

#include <dirent.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* From include/uapi/linux/fs.h, because installed headers can be older than the kernel. */
struct procmap_query
{
	uint64_t	size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t	dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t	vma_name_addr, build_id_addr;
};

#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)
#define POOLS "/sys/kernel/mm/hugepages"

static const char *const counters[] = {"nr", "free", "resv", "surplus", "nr_overcommit"};
/* The main file, the file of ALTER SYSTEM, and the directory of included files. */
static const char *const configuration[] = {"postgresql.conf", "postgresql.auto.conf", "conf.d"};
static const char *const limits[2][4] = {
	{"limit_in_bytes", "usage_in_bytes", "rsvd.limit_in_bytes", "rsvd.usage_in_bytes"},
	{"max", "current", "rsvd.max", "rsvd.current"},
};

/* The hugetlb cgroup: a path that starts with the mount point. */
static char group[4096];
static size_t mount_point_length;
static int	version = -1;

/* The sizes of the pools in kB, and the watched lists of mounts. */
static unsigned long pools[16];
static int	number = 0;
static struct pollfd watched[2];

/* Sets the cgroup. If there is none, the program reads none. */
static void
find_group(const char *pid)
{
	char		path[2048] = "", mounted[1024], where[1024], kind[16], options[1024];
	char	   *line, *rest;

	slurp(named("/proc/%s/cgroup", pid), 4096);
	for (rest = buffer; (line = strsep(&rest, "\n"));)
	{
		if (sscanf(line, "0::%2047[^\n]", path) == 1 && version < 0)
			version = 1;
		if (sscanf(line, "%*d:%1023[^:]:%2047[^\n]", options, where) == 2 && strstr(options, "hugetlb"))
		{
			version = 0;
			strcpy(path, where);
			break;
		}
	}

	slurp("/proc/self/mountinfo", 4096);
	for (rest = buffer; (line = strsep(&rest, "\n"));)
	{
		char	   *after = strstr(line, " - ");

		if (after &&
			sscanf(line, "%*d %*d %*s %1023s %1023s", mounted, where) == 2 &&
			sscanf(after, " - %15s %*s %1023s", kind, options) == 2 &&
			(version ? strcmp(kind, "cgroup2") == 0 : strcmp(kind, "cgroup") == 0 && strstr(options, "hugetlb")))
		{
			size_t		skip = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);

			if (strncmp(path, mounted, skip) != 0 || strstr(path, "/.."))
				continue;
			mount_point_length = strlen(where);
			snprintf(group, sizeof group, "%s%s", where, strcmp(path + skip, "/") == 0 ? "" : path + skip);
			return;
		}
	}
}

/* Formats a page size like the kernel, as in hugetlb.2MB.max. */
static const char *
size_name(unsigned long kilobytes)
{
	static char name[32];

	if (kilobytes >= 1 << 20)
		snprintf(name, sizeof name, "%luGB", kilobytes >> 20);
	else if (kilobytes >= 1 << 10)
		snprintf(name, sizeof name, "%luMB", kilobytes >> 10);
	else
		snprintf(name, sizeof name, "%luKB", kilobytes);
	return name;
}

static struct procmap_query
ask(int maps, uint64_t address)
{
	struct procmap_query query = {.size = sizeof query, .query_addr = address};

	if (ioctl(maps, PROCMAP_QUERY, &query) && errno != ENOENT)
		err(1, "PROCMAP_QUERY");
	return query;
}

/* Reads the facts that a session caches until a mount changes, and starts watching the mounts. */
static void
find_steady(const char *pid)
{
	static const char *const lists[] = {"/proc/self/mountinfo", "/proc/1/mountinfo"};
	struct dirent *entry;
	DIR		   *directory = opendir(POOLS);

	if (!directory)
		err(1, POOLS);
	while ((entry = readdir(directory)))
		if (number < 16 && sscanf(entry->d_name, "hugepages-%lukB", &pools[number]) == 1)
			number++;
	closedir(directory);
	find_group(pid);
	for (int i = 0; i < 2; i++)
		watched[i] = (struct pollfd){open_to_read(lists[i]), POLLPRI, 0};
}

static void
status(const char *pid, uint64_t address)
{
	int			is_empty = 0, maps;
	char		of_group[sizeof group];
	struct procmap_query segment;
	struct stat file;

	poll(watched, 2, 0);
	for (int pool = 0; pool < number; pool++)
		for (int i = 0; i < 5; i++)
		{
			slurp_record(named(POOLS "/hugepages-%lukB/%s_hugepages", pools[pool], counters[i]));
			/* An empty pool needs only the last of the other counters. */
			if (i == 0 && (is_empty = buffer[0] == '0'))
				i = 3;
			if (i == 4 && !is_empty)
				slurp_record(named(POOLS "/hugepages-%lukB/demote_size", pools[pool]));
		}

	maps = open_to_read(named("/proc/%s/maps", pid));
	segment = ask(maps, address);
	ask(maps, segment.vma_start - 1);
	ask(maps, segment.vma_end);
	close(maps);

	slurp_record("/proc/meminfo");
	slurp_record("/sys/devices/system/node/has_memory");
	for (int i = 0; i < 3; i++)
		lstat(named("/proc/%s/cwd/%s", pid, configuration[i]), &file);
	slurp_record(named("/proc/%s/cgroup", pid));
	if (!*group)
		return;
	for (strcpy(of_group, group);;)
	{
		int			enabled = 1;

		for (int pool = 0; pool < number && enabled; pool++)
			for (int i = 0; i < 4 && enabled; i++)
				enabled = slurp_record(named("%s/hugetlb.%s.%s", of_group, size_name(pools[pool]), limits[version][i])) || i > 0;
		if (!enabled && strcmp(of_group, group) == 0)
			close(open_to_read(named("%s/cgroup.procs", of_group)));
		if (strlen(of_group) <= mount_point_length)
			return;
		*strrchr(of_group, '/') = '\0';
	}
}

int
main(int count, char **words)
{
	double		start;
	long		times;

	if (count != 4)
		errx(2, "usage: status_floor PID ADDRESS TIMES");
	find_steady(words[1]);
	times = atol(words[3]);
	reads = 0;
	start = now();
	for (long i = 0; i < times; i++)
		status(words[1], strtoull(words[2], NULL, 16));
	print_cost(start, times);
	return 0;
}
