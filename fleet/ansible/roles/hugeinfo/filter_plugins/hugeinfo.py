"""Parses the output of server.sql.j2 and composes the commands that this role runs.

Databases are not trusted, so no text from them is executed. Each step of hugeinfo_runbook is
matched with FORMS. The command is then composed from the form and a few validated numbers and
names.
"""

import json
import re
from collections import namedtuple

from ansible.errors import AnsibleFilterError

PAGES = "0|[1-9][0-9]{0,9}"
FIELDS = {
    "pages": PAGES,
    "demoted": PAGES,
    "old_pages": PAGES,
    "old_percent": PAGES,
    "percent": "100|[1-9][0-9]?",
    "kb": "[1-9][0-9]{0,7}",
    "node": "0|[1-9][0-9]{0,3}",
    "equals": " = |=",
    "name": "[A-Za-z0-9_-]{1,64}",
    "sysctl_file": r"sysctl|sysctl\.d/[A-Za-z0-9_-]{1,64}",
    "thp_file": "(?:hugepages-[1-9][0-9]{0,7}kB/)?(?:shmem_)?enabled",
    "thp_mode": "madvise|advise|never",
    "old_mode": "[a-z_]{1,20}",
    "page_size": "[1-9][0-9]{0,3}[kMG]B",
    "verb": "stop|start|restart",
    "ends": r"(?: \(ends all sessions\))?",
}

# where_to_run, the command, and the pool file that it sets. at_boot: the change applies at boot.
Form = namedtuple("Form", "where command pool at_boot", defaults=(None, False))

DEFAULT_POOL = "/proc/sys/vm/nr_hugepages"
POOL = "/sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages"
NODE_POOL = "/sys/devices/system/node/node{node}/hugepages/hugepages-{kb}kB/nr_hugepages"
THP = "/sys/kernel/mm/transparent_hugepage/{thp_file}"
DEMOTE = "/sys/kernel/mm/hugepages/hugepages-{kb}kB/demote"
TMPFILES = "w " + THP + " - - - - "


def _boot_forms():
    """Lines for the next boot, each appended to a file or in place of an older line."""
    for directory, old, new, separator, file, pool_file in (
        (
            "/etc/sysctl.d",
            r"vm\.nr_hugepages{equals}{old_pages}",
            "vm.nr_hugepages = {pages}",
            "/",
            "{sysctl_file}",
            DEFAULT_POOL,
        ),
        (
            "/etc/sysctl.d",
            r"vm\.overcommit_ratio{equals}{old_percent}",
            "vm.overcommit_ratio = {percent}",
            "/",
            "{sysctl_file}",
            None,
        ),
        (
            "/etc/tmpfiles.d",
            TMPFILES + "{old_mode}",
            TMPFILES + "{thp_mode}",
            ",",
            "tmpfiles.d/{name}",
            None,
        ),
    ):
        for mkdir in ("", f"mkdir -p {directory} && "):
            command = f"(umask 022 && {mkdir}echo '{new}' >> {directory}/{{name}}.conf)"
            yield Form("root shell", command, pool_file, True)
        command = f"sed -i 's{separator}^{old}${separator}{new}{separator}' /etc/{file}.conf"
        yield Form("root shell", command, pool_file, True)


FORMS = [
    Form("root shell", "sysctl -w vm.nr_hugepages={pages}", DEFAULT_POOL),
    Form("root shell", "echo {pages} > " + POOL, POOL),
    Form("root shell", "echo {pages} > " + NODE_POOL, NODE_POOL),
    Form("root shell", "echo 1 > /proc/sys/vm/compact_memory"),
    Form("root shell", "echo {demoted} > " + DEMOTE),
    Form("root shell", "sysctl -w vm.overcommit_ratio={percent}"),
    Form("root shell", "echo {thp_mode} > " + THP),
    *_boot_forms(),
    Form("SQL", "ALTER SYSTEM SET huge_pages = 'try';"),
    Form("SQL", "ALTER SYSTEM SET shared_memory_type = 'mmap';"),
    Form("SQL", "ALTER SYSTEM SET huge_page_size = 0;"),
    Form("SQL", "ALTER SYSTEM SET huge_page_size = '{page_size}';"),
    Form("SQL", "SELECT pg_reload_conf();"),
    # An instruction, not a command. The role runs its own command for the verb.
    Form("service", "{verb} PostgreSQL{ends}"),
]


def _fields_of(command):
    return re.findall(r"\{(\w+)\}", command)


def _pattern(command):
    """Returns a pattern for all commands that can be composed from this form."""
    pattern = re.escape(command)
    for name in _fields_of(command):
        field = re.escape("{" + name + "}")
        pattern = pattern.replace(field, f"(?P<{name}>{FIELDS[name]})", 1)
        pattern = pattern.replace(field, f"(?P={name})")
    return re.compile(pattern)


# Far more than a real runbook has.
MOST_STEPS = 64

PATTERNS = [_pattern(form.command) for form in FORMS]


def _parsed(where, command):
    """Returns the number of the matching form, and the fields of the command."""
    for number, form in enumerate(FORMS):
        match = where == form.where and PATTERNS[number].fullmatch(command)
        if match:
            return {"form": number, "fields": match.groupdict()}
    return {"form": None}


def compose(step):
    """Composes the command of a step, and checks its fields again."""
    form = FORMS[step["form"]]
    fields = {name: str(step["fields"][name]) for name in _fields_of(form.command)}
    for name, value in fields.items():
        if not re.fullmatch(FIELDS[name], value):
            raise AnsibleFilterError(f"{name} has an unexpected value")
    return form.command.format(**fields)


class _Host:
    """The memory of the host, from the lines that hugeinfo_read_memory prints."""

    def __init__(self, text):
        lines = re.findall(r"^/proc/meminfo:(\w+): +([0-9]+) kB$", text, re.MULTILINE)
        memory = {name: int(kb) for name, kb in lines}
        lines = re.findall(r"^(/\S+/nr_hugepages):([0-9]+)$", text, re.MULTILINE)
        self.pages = {file: int(pages) for file, pages in lines}
        self.default_kb = memory.get("Hugepagesize", 0)
        ratio = re.search(r"^/proc/sys/vm/overcommit_ratio:([0-9]+)$", text, re.MULTILINE)
        # 0: vm.overcommit_kbytes applies, which a ratio would replace.
        self.overcommit_ratio = int(ratio[1]) if ratio else 0
        self.has_pools = POOL.format(kb=self.default_kb) in self.pages
        # A tenth of the memory must remain.
        self.limit_kb = memory["MemTotal"] * 9 // 10

    def pool(self, step):
        """Returns the pool that a step sets: the file, the page size and the number of pages."""
        fields = step["fields"]
        kb = int(fields.get("kb", self.default_kb))
        file = FORMS[step["form"]].pool.format(**fields)
        # One pool has two files.
        return POOL.format(kb=kb) if file == DEFAULT_POOL else file, kb, int(fields["pages"])

    def used_kb(self, except_sizes=()):
        """Returns the size of all pools. If they could not be read, they might use all memory."""
        if not self.has_pools:
            return self.limit_kb
        used = 0
        for file, pages in self.pages.items():
            match = re.fullmatch(POOL.format(kb="([0-9]+)"), file)
            if match and int(match[1]) not in except_sizes:
                used += int(match[1]) * pages
        return used

    def is_too_much(self, steps):
        """Returns true if these steps and the pools of other sizes leave less than a tenth."""
        pools, sizes = {}, set()
        for file, kb, pages in map(self.pool, steps):
            pools[file] = max(pools.get(file, 0), pages * kb)
            sizes.add(kb)
        return sum(pools.values()) + self.used_kb(sizes) > self.limit_kb

    def apply(self, step):
        """Applies a step that sets a pool. Returns true if the pool becomes smaller."""
        file, _, pages = self.pool(step)
        before = max(self.pages.get(file, 0), int(step["fields"].get("old_pages", 0)))
        if not FORMS[step["form"]].at_boot:
            self.pages[file] = pages
        return pages < before


def pool(step, text):
    """Returns the pool that a step sets, and how much all pools can grow."""
    host = _Host(text)
    _, kb, pages = host.pool(step)
    return {
        "file": FORMS[step["form"]].pool.format(**step["fields"]),
        "kb": kb,
        "pages": pages,
        "growth_kb": host.limit_kb - host.used_kb(),
    }


def _printable(text):
    """Returns the text as one line without control characters."""
    return "".join(c if c.isprintable() else " " for c in text[:1000])


def _steps(status, runbook, host):
    """Returns the steps of the runbook. A step without a form is for a person."""
    steps = []
    for row in runbook:
        status = row["expected"] or status
    # Steps that lead to a healthy server do not have to wait for decisions about something else.
    is_enough = status.startswith("ok: ")
    for row in runbook:
        where = row["where_to_run"]
        text = row["command"] or row["instruction"]
        step = _parsed(where, text)
        step["shrinks"] = False
        if step["form"] is None:
            step["text"] = _printable(f"{where or 'decision'}: {text}") + " (for a person)"
        else:
            form = FORMS[step["form"]]
            step["text"] = f"{where}: {compose(step)}"
            step["where"] = where
            step["sets_pool"] = bool(form.pool) and not form.at_boot
            # With strict overcommit, programs could not allocate the memory that they use now.
            percent = step["fields"].get("percent")
            if percent and not 0 < host.overcommit_ratio <= int(percent):
                step["form"] = None
                step["text"] += " (for a person: could lower the commit limit)"
            # Splitting pages makes the pool of these pages smaller.
            elif form.command.endswith("/demote") or form.pool and host.apply(step):
                step["shrinks"] = True
                step["text"] += " (makes a pool smaller)"
        # A decision, or a change of a unit or for the next boot, which a person makes.
        # `expected` is null because the step does not change hugeinfo_status.
        is_for_person = where in ("service", "by hand") or where is None and is_enough
        step["can_wait"] = is_for_person and row["expected"] is None
        steps.append(step)
    for at_boot in (False, True):
        known = [(step, FORMS[step["form"]]) for step in steps if step["form"] is not None]
        pools = [step for step, form in known if form.pool and form.at_boot == at_boot]
        if host.is_too_much(pools):
            for step in pools:
                step["form"] = None
                step["text"] += " (for a person: leaves less than 10% of this host's memory)"
    return steps


def answer(stdout, memory):
    """Parses the output of server.sql.j2. Any other structure is an error."""
    try:
        said = json.loads(stdout)
        status, reason = said["status"]["status"], said["status"]["reason"]
        result = {name: said[name] for name in ("is_standby", "is_streaming", "spares_a_standby")}
        if not all(isinstance(value, bool) for value in result.values()):
            raise ValueError("no Boolean")
        for name, text in (("status", status), ("reason", reason), ("started", said["started"])):
            result[name] = _printable(text)
        result["system_identifier"] = re.fullmatch("[0-9]{1,20}", said["system_identifier"])[0]
        if len(said["runbook"]) > MOST_STEPS:
            raise ValueError("too many steps")
        result["steps"] = _steps(f"{status}: {reason}", said["runbook"], _Host(memory))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise AnsibleFilterError(f"psql printed an unexpected answer: {error!a}"[:1000]) from None
    return result


class FilterModule:
    """The filters of the role hugeinfo."""

    def filters(self):
        """Returns the filters by name."""
        return {"hugeinfo_answer": answer, "hugeinfo_compose": compose, "hugeinfo_pool": pool}
