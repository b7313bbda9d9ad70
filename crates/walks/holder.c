/*
 * Holds a shared mapping on huge pages, made as PostgreSQL's CreateAnonymousSegment makes its own.
 * Obeys lines of standard input, one answer each, and ends with it:
 *
 *   map PAGES KB reserve|noreserve   mapped, or refused ERRNO
 *   touch FIRST PAGES                touched PAGES, or sigbus PAGES: those before the one refused
 *   child FIRST PAGES                the same by a child, which ends then, or dies of it
 *   unmap                            unmapped
 *
 * The number of a processor as argument: it stays there, and so on its node. Then, if there is one,
 * the number of the only node that it may use (set_mempolicy(2), MPOL_BIND).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIND 2

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

static char *memory;
static size_t page, size;
/* seen by the parent, too */
static volatile long *done;
static sigjmp_buf back;

static void
on_sigbus(int signal)
{
	siglongjmp(back, signal);
}

static void
map(long pages, long kb, int flags)
{
	int shift = 0;

	page = (size_t) kb * 1024;
	size = page * (size_t) pages;
	while ((1UL << shift) < page)
		shift++;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB | (shift << MAP_HUGE_SHIFT) | flags,
				  -1, 0);
	if (memory == MAP_FAILED)
	{
		memory = NULL;
		printf("refused %d\n", errno);
	}
	else
		puts("mapped");
}

static void
walk(long first, long pages)
{
	for (*done = 0; *done < pages; ++*done)
		memory[(size_t) (first + *done) * page] = 1;
}

static void
touch(long first, long pages)
{
	if (sigsetjmp(back, 1) == 0)
	{
		walk(first, pages);
		printf("touched %ld\n", *done);
	}
	else
		printf("sigbus %ld\n", *done);
}

static void
touch_by_child(long first, long pages)
{
	int status;
	pid_t child = fork();

	if (child == 0)
	{
		signal(SIGBUS, SIG_DFL);
		walk(first, pages);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		printf("failed %d\n", errno);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		printf("sigbus %ld\n", *done);
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		printf("touched %ld\n", *done);
	else
		printf("failed %d\n", status);
}

int
main(int argc, char **argv)
{
	char line[200], how[20];
	long first, pages, kb;

	if (argc > 1)
	{
		cpu_set_t processor;

		CPU_ZERO(&processor);
		CPU_SET(atoi(argv[1]), &processor);
		if (sched_setaffinity(0, sizeof(processor), &processor) != 0)
			return 1;
	}
	if (argc > 2)
	{
		unsigned long nodes = 1UL << atoi(argv[2]);

		if (syscall(SYS_set_mempolicy, BIND, &nodes, 8 * sizeof(nodes)) != 0)
			return 1;
	}
	done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (done == MAP_FAILED || signal(SIGBUS, on_sigbus) == SIG_ERR)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin))
	{
		if (sscanf(line, "map %ld %ld %19s", &pages, &kb, how) == 3)
			map(pages, kb, strcmp(how, "noreserve") == 0 ? MAP_NORESERVE : 0);
		else if (memory && sscanf(line, "touch %ld %ld", &first, &pages) == 2)
			touch(first, pages);
		else if (memory && sscanf(line, "child %ld %ld", &first, &pages) == 2)
			touch_by_child(first, pages);
		else if (memory && strcmp(line, "unmap\n") == 0)
		{
			puts(munmap(memory, size) == 0 ? "unmapped" : "failed");
			memory = NULL;
		}
		else
			puts("not understood");
	}
	return 0;
}
