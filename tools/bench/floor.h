/*
 * Shared code of the C programs. Each reads the same files as a function of the extension, ignores
 * their contents, and prints the microseconds and the number of reads per call.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 17];
static unsigned long reads;

/* Formats like printf. The result is valid until the next call. */
__attribute__((format(printf, 1, 2)))
static inline const char *
named(const char *format,...)
{
	static char name[4200];
	va_list		values;

	va_start(values, format);
	vsnprintf(name, sizeof name, format, values);
	va_end(values);
	return name;
}

/* Returns -1 if there is no such file. */
static inline int
open_to_read(const char *path)
{
	int			file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0 && errno != ENOENT)
		err(1, "%s", path);
	return file;
}

/* Reads a file in pieces. Returns false if there is no file. */
static inline int
slurp(const char *path, size_t at_once)
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
	} while (got > 0);
	close(file);
	return 1;
}

/* Reads a file that the kernel generates as one record. Returns false if there is no file. */
static inline int
slurp_record(const char *path)
{
	int			file = open_to_read(path);
	ssize_t		got;

	if (file < 0)
		return 0;
	got = read(file, buffer, 4096);
	reads++;
	if (got < 0 || got == 4096)
		err(1, "%s", path);
	buffer[got] = '\0';
	close(file);
	return 1;
}

static inline double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static inline void
print_cost(double start, long times)
{
	printf("%.1f %lu\n", (now() - start) / times, reads / times);
}
