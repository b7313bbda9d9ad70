/*
 * The least that the kernel takes for one hugeinfo_status: the same system calls on the same files, with nothing made of the
 * answers. For comparison also what reading all of smaps takes.
 *
 *     status_floor status PID ADDRESS TIMES    PID: the postmaster; ADDRESS: inside its main segment, hexadecimal
 *     status_floor smaps PID TIMES             PID: any process
 *
 * Prints microseconds each time took, and how many reads it made. To be kept in step with crates/hugeinfo/src/facts.rs:
 * bench/run compares the reads. Needs PROCMAP_QUERY (Linux 6.11).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* From include/uapi/linux/fs.h: the headers installed may be older than the kernel. */
struct procmap_query
{
	uint64_t	size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t	dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t	vma_name_addr, build_id_addr;
};

#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)
#define POOLS "/sys/kernel/mm/hugepages"

static const char *const counters[] = {"nr", "free", "resv", "surplus", "nr_overcommit"};
static const char *const limits[2][4] = {
	{"limit_in_bytes", "usage_in_bytes", "rsvd.limit_in_bytes", "rsvd.usage_in_bytes"},
	{"max", "current", "rsvd.max", "rsvd.current"},
};

/* The hugetlb control group: mount point and group in one path, of which the mount point is the first part. */
static char group[4096];
static size_t mount_point_length;
static char mount[4096];
static int	version = -1;

static char buffer[1 << 17];
static unsigned long reads;

/* As printf, until the next call. */
__attribute__((format(printf, 1, 2)))
static const char *
named(const char *format,...)
{
	static char name[4200];
	va_list		values;

	va_start(values, format);
	vsnprintf(name, sizeof name, format, values);
	va_end(values);
	return name;
}

/* -1 if there is no such file. */
static int
open_to_read(const char *path)
{
	int			file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0 && errno != ENOENT)
		err(1, "%s", path);
	return file;
}

/* Reads a file, so much at once, up to some text in it or to its end; false if there is none. */
static int
slurp_up_to(const char *text, const char *path, size_t at_once)
{
	int			file = open_to_read(path);
	size_t		length = 0;
	ssize_t		got;

	if (file < 0)
		return 0;
	do
	{
		if (length + at_once >= sizeof buffer)
			length = 0;
		got = read(file, buffer + length, at_once);
		reads++;
		if (got < 0)
			err(1, "%s", path);
		length += got;
		buffer[length] = '\0';
	} while (got > 0 && !(text && strstr(buffer, text)));
	close(file);
	return 1;
}

static int
slurp(const char *path, size_t at_once)
{
	return slurp_up_to(NULL, path, at_once);
}

/* Fills in the control group; none found is none read. */
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
			snprintf(mount, sizeof mount, "%s", line);
			mount_point_length = strlen(where);
			snprintf(group, sizeof group, "%s%s", where, strcmp(path + skip, "/") == 0 ? "" : path + skip);
			return;
		}
	}
}

/* The kernel's way to write a page size, as in hugetlb.2MB.max. */
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

static void
status(const char *pid, uint64_t address)
{
	unsigned long pools[16];
	int			number = 0, maps;
	char		of_group[sizeof group];
	struct dirent *entry;
	struct procmap_query segment;
	DIR		   *directory = opendir(POOLS);

	if (!directory)
		err(1, POOLS);
	while ((entry = readdir(directory)))
		if (number < 16 && sscanf(entry->d_name, "hugepages-%lukB", &pools[number]) == 1)
			number++;
	closedir(directory);
	for (int pool = 0; pool < number; pool++)
		for (int i = 0; i < 5; i++)
		{
			slurp(named(POOLS "/hugepages-%lukB/%s_hugepages", pools[pool], counters[i]), 4096);
			/* Of an empty pool the other counters are known, but for the last. */
			if (i == 0 && buffer[0] == '0')
				i = 3;
		}

	maps = open_to_read(named("/proc/%s/maps", pid));
	segment = ask(maps, address);
	ask(maps, segment.vma_start - 1);
	ask(maps, segment.vma_end);
	close(maps);

	slurp("/proc/meminfo", 4096);
	slurp(named("/proc/%s/cgroup", pid), 4096);
	slurp_up_to(*mount ? mount : NULL, "/proc/self/mountinfo", 4096);
	if (!*group)
		return;
	for (strcpy(of_group, group);;)
	{
		int			enabled = 1;

		for (int pool = 0; pool < number && enabled; pool++)
			for (int i = 0; i < 4 && enabled; i++)
				enabled = slurp(named("%s/hugetlb.%s.%s", of_group, size_name(pools[pool]), limits[version][i]), 4096) || i > 0;
		if (!enabled && strcmp(of_group, group) == 0)
			close(open_to_read(named("%s/cgroup.procs", of_group)));
		if (strlen(of_group) <= mount_point_length)
			return;
		*strrchr(of_group, '/') = '\0';
	}
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

int
main(int count, char **words)
{
	int			of_status = count == 5 && strcmp(words[1], "status") == 0;
	int			of_smaps = count == 4 && strcmp(words[1], "smaps") == 0;
	long		times;
	double		start;

	if (!of_status && !of_smaps)
		errx(2, "usage: status_floor status PID ADDRESS TIMES | smaps PID TIMES");
	if (of_status)
		find_group(words[2]);
	times = atol(words[count - 1]);
	reads = 0;
	start = now();
	for (long i = 0; i < times; i++)
		if (of_status)
			status(words[2], strtoull(words[3], NULL, 16));
		else if (!slurp(named("/proc/%s/smaps", words[2]), 1 << 16))
			errx(1, "no process %s", words[2]);
	printf("%.1f %lu\n", (now() - start) / times, reads / times);
	return 0;
}
