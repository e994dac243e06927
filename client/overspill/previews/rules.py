"""The rules by which a line says that something went wrong, the most telling first.

Collected from what compilers, test runners, package managers, shells, databases, servers, kernels and build
servers print. Every pattern is bounded, so that no line takes long. A rule's words are searched for first,
because that is faster than its pattern.
"""

from __future__ import annotations

from typing import Final

from overspill.previews.rule import (
    DECISIVE,
    HINT,
    MARKED,
    SAID,
    WARNING,
    Role,
    at_word,
    rule,
)

_SOME: Final = r"[1-9][\d,]{0,9}"
_ERROR: Final = (
    r"(?:fatal |internal |syntax |parse |runtime |load ?|type |compile )?error"
    r"(?:\[\w{1,20}\]| [a-z]{1,6}\d{1,6}| in \S{1,200})?: \S"
)
_CLOSES: Final = Role.CLOSES
_OPENS: Final = Role.OPENS
RULES: Final = (
    # What a step says when it has ended badly: the reason stands before it.
    rule(
        MARKED + 1,
        "exit|returned|marked build|finished: |job failed|will not run",
        rf"\b(?:exit(?:ed|s|ing)?|returned|failed)(?: \w+){{0,3}} (?:status |code )?:? ?{_SOME}\.?$",
        rf"\bexit(?:ed)?(?: with| -)? ?(?:exit )?(?:status|code)[:= ]{{1,3}}{_SOME}\b|\bexit {_SOME}\b",
        rf"\bexited with {_SOME}\b|\breturned {_SOME}\b|exit status {_SOME}|non-?zero (?:exit|code|status)",
        r"marked build as failure|^finished: failure|^error: job failed|returned a non-zero code",
        role=_CLOSES,
    ),
    rule(
        MARKED,
        "***|rake aborted|build stopped|BUILD FAIL|Execution halted| FAILED **|Command failed|NOT complete"
        "|Configuring incomplete|ELIFECYCLE|not remade",
        r"\bmake(?:\[\d+\])?: \*\*\*|\brake aborted|\bninja: build stopped|\bBUILD FAIL|Execution halted",
        r"\*\* (?:BUILD|TEST|ARCHIVE) FAILED \*\*|^(?:error|ERROR):? Command failed|Build did NOT complete",
        r"Configuring incomplete|ELIFECYCLE|\bmake: Target .{1,80} not remade|^\*\*\* Error code",
        is_exact=True,
        role=_CLOSES,
    ),
    # Headings: the reason stands after them.
    rule(
        MARKED,
        "fail|error|went wrong|problem",
        "found errors in ",
        start=r"\W{0,8}(?:there (?:was|were) \d+ (?:failure|error)s?|(?:the following )?(?:failed"
        r"|failing) (?:tests?|examples?)"
        r"|(?:tests?|builds?) (?:failed|in error)|(?:the following )?(?:\w+ ){0,3}fail(?:ed|ures?)"
        r"|(?:\w+ ){0,2}errors?"
        r"|failure summary|summary of failures|what went wrong|problem \d+|errors? and failures?"
        r"|error (?:message|details)|stack ?trace)"
        r"(?: \(\d+\))?\W{0,8}:$"
        r"|=+ (?:failures|errors) =+$|\* what went wrong|(?:there (?:was|were)|found) \d+ (?:failure"
        r"|error)s?\W?$"
        r"|---- .{1,120} stdout ----$|-{4,} fail|\W{0,8}(?:failures?|errors?)\W{0,4}$|failed example",
        role=_OPENS,
    ),
    # The last line of a traceback, and what it says of the cause.
    rule(
        DECISIVE,
        "Error|Exception|Exit|Interrupt|Failure|Iteration|Assertion|Timeout|Fault",
        r"\((?:[A-Z]\w{0,60}::){0,5}[A-Z]\w{0,60}(?:Error|Exception)\)$",
        start=r"\W{0,8}(?:[A-Za-z_]\w{0,80}(?:\.|::|/)){0,12}[A-Z_]\w{0,80}"
        r"(?:Error|Exception|Exit|Interrupt|Failure|Iteration|Assertion|Timeout|Fault)"
        r"(?: ?[\[(][\w ]{1,60}[\])])?(?:: ?\S|:?$)"
        r"|(?:[A-Z]\w{0,60}::){1,6}[A-Z]\w{0,60}(?:: | \()",
        is_exact=True,
    ),
    rule(
        DECISIVE,
        "caused by: |exception|uncaught |unhandled |panic|goroutine |terminate called|what():|** ("
        "|fatal error"
        "|failed asserting|report=|backtrace",
        at_word(r"panicked at\b|terminate called\b|what\(\): "),
        r"failed asserting|fatal error: |parse error: |\*\* exception |terminating app due to uncaught",
        start=r"\s*(?:caused by: |exception in |\*\*\* exception|uncaught |unhandled |panic: )"
        r"|\s*goroutine \d+ \[|\*\* \(|=(?:error|crash) report=",
    ),
    # Compilers, linkers, linters.
    rule(
        DECISIVE,
        "error",
        rf"[:\]\s(\[/]{_ERROR}",
        start=rf"{_ERROR}|\s*\d+:\d+\s+error\s|error in \S|error\[[a-z]\d+\]",
    ),
    rule(
        DECISIVE,
        "undefined |multiple definition|duplicate symbol|cannot find |unresolved |module not found"
        "|flag provided"
        "|unrecogni|unknown |not in scope|unbound|no required module|undefined:|invalid choice|redefin",
        r"undefined (?:reference|symbol|name|variable|method|function|local|control)|undefined: \w",
        r"multiple definition|duplicate symbol|cannot find (?:-l|symbol|module|package)|no required module",
        r"unresolved (?:external|import|reference)|module not found|flag provided but not defined",
        r"unrecogni[sz]ed (?:option|argument|command)|unknown (?:option|command|flag|revision)"
        r"|invalid choice",
        r"\bnot in scope\b|\bunbound (?:variable|value)",
    ),
    # Test runners.
    rule(DECISIVE, "E  ", start=r"E {2,}\S", is_exact=True),
    rule(
        DECISIVE,
        "FAIL|ERROR|Failed|not ok|✗|✘|✖|❌|\N{MULTIPLICATION SIGN}|●",
        r"\.{2,} ?(?:\*{3})?(?:FAILED|FAIL|ERROR|Failed)\b| (?:FAILED|ERROR|FAIL)!?(?:\s*\[ *\d+%\]"
        r"| \(.{1,40}\))?$",
        r"\*{3} FAILED \*{3}|<<< (?:FAILURE|ERROR)!|\[ +(?:FAILED|ERROR) +\]|^\[FAIL\]"
        r"|-UNEXPECTED-(?!PASS)[A-Z]+",
        at_word(r"FAILED in \d"),
        r"PROCESS-CRASH|- FAILED!?\b|Test Case '.{1,160}' failed",
        start=r"(?:FAILED|ERROR|FAIL:?|ERROR:)\s+\S|\s*--- FAIL|\s*not ok\b|\s*[✗✘✖❌\xd7●] ?\S"
        r"|FAIL\b|\W{0,3}Failed\s+\S+ \[[\d<,. ]+m?s\]$|#\s+Failed test|# FAILED: ",
        is_exact=True,
    ),
    rule(
        DECISIVE,
        "assert|expect|should |did not match|not equal|did you mean",
        r"\bassert\w{0,40}\b.{0,120}?(?:fail|[!=<>]=| is | in )|\bassertion failed",
        r"expected\b.{0,120}?\b(?:got|but|found|received|actual|to (?:be|equal|include|match|not)|was"
        r"|instead)\b",
        r"^\s*expected: ?\S|expected \S.{0,80}, (?:actual|got)\b|^\s*(?:\+ )?expected .{1,80}(?:, |\bto\b)",
    ),
    # What the system says.
    rule(
        DECISIVE,
        "segmentation fault|segfault at|core dumped|out of memory|oom-kill|oomkill|killed|bus error"
        "|illegal instruction|cannot allocate|no space left|stack overflow|buffer overflow|sigsegv|sigabrt"
        "|sigkill|sigbus|sigill|sigfpe|invalid read|invalid write|invalid free|data race|sanitizer: "
        "|definitely lost: |leaked |-leak",
        r"segmentation fault|segfault at|core dumped|out of memory|oom-?kill|(?<![\w-])killed(?:$"
        r"| process|\s+[\w./])",
        r"bus error|illegal instruction|cannot allocate|no space left|stack overflow"
        r"|heap .{0,20}out of memory",
        r"\bsig(?:segv|abrt|kill|bus|ill|fpe)\b|\binvalid (?:read|write|free)\b|\bdata race\b",
        r"\w{1,20}sanitizer: (?!deadly)|definitely lost: [1-9]|buffer overflow|leaked \d+|-leak\b",
    ),
    rule(
        DECISIVE,
        "blocked for|bug: |oops|kernel panic|protection fault|lockup|stall|unable to handle|i/o error|rip: "
        "|hardware error|machine check|call trace|-fs error",
        r"blocked for more than \d+|^bug: |\boops: |kernel panic|general protection|(?:soft|hard) ?lockup",
        r"self-detected stall|unable to handle (?:kernel|page)|\bi/o error|^rip: |hardware error"
        r"|machine check",
        r"-fs error",
    ),
    rule(
        DECISIVE,
        "not |no |denied|connection |resolve|unreachable|in use|quota|read-only|verif|authentication"
        "|certificate|timed out|locate|missing|can't |cannot |unable ",
        r"command not found|permission denied|access denied|not permitted|request timed out"
        r"|not recognized as",
        r"no such (?:file|host|table|column|module|package|remote|image|key|variable|method)",
        r"connection (?:refused|reset|timed out|closed)|(?:host key|login|certificate) verification failed",
        r"could not (?:resolve|find|locate|connect|load|read|open|compile|install)|unreachable"
        r"|already in use",
        r"disk quota|read-only file system|unable to (?:locate|find|resolve|connect|load|open|access|select)",
        r"no matching (?:distribution|version|package)|(?:authentication|verification) failed",
        r"certificate (?:problem|verif|has expired|is not)|can't (?:locate|open|find|load|resolve|connect"
        r"|read)",
        r"cannot (?:open|find|load|resolve|connect|access|stat|import|execute|read)\b",
    ),
    # Builds, packages, repositories, databases, orchestration, answers.
    rule(
        DECISIVE,
        "ninja: |CMake |npm |ERR_|ENO|EAC|EPERM|ECONN|EADDR|ETIME|EEXIST|ERES|EPIPE|EISDIR|EMFILE|EBAD"
        "|EUSAGE|EJSON"
        "|EINVAL|EHOST|E404|configure: |FAILED|##[|::error|Execution failed|Failed to|! |YN0|Bad exit|E: "
        "|Err:",
        r"\b(?:ninja: |CMake Error|npm (?:ERR!|error) (?!A complete|Exit|\s*$)|ERR_\w+|E[A-Z]{4,30}\b: )",
        r"^configure: error|^FAILED: |^##\[error\](?!Process completed)|^::error|Execution failed for task",
        r"^\W{0,8}Failed to \w|^! [A-Z]|^\W{0,4}YN0\d+: .{0,40}[Ee]rror|Bad exit status|^E: \S|^Err:\d+ ",
        is_exact=True,
    ),
    rule(
        DECISIVE,
        "fatal:|conflict (|rejected]|error:|failed!|unreachable!",
        r"^(?:\S{1,80}: )?fatal:|^conflict \(|! \[(?:remote )?rejected\]|^fatal error",
    ),
    rule(
        DECISIVE,
        "syntax error|constraint|violates|sqlstate|ora-|duplicate|deadlock|error 1|does not exist"
        "|rolled back",
        r"\bsyntax error\b|constraint failed|violates \w+|sqlstate|\bora-\d{5}|duplicate (?:key|entry)",
        r"\bdeadlock\b|^error \d+ \(|does not exist\b|could not be resolved to an installable",
    ),
    rule(
        DECISIVE,
        "backoff|oomkilled|failedscheduling|errimage|probe failed|back-off|evicted|failed with result"
        "|start request|dependency failed|failed to start|error from server|failed to solve|failed!",
        r"crashloopbackoff|imagepullbackoff|oomkilled|failedscheduling|errimage|probe failed|back-off"
        r"|\bevicted\b",
        r"failed with result|start request repeated|dependency failed|failed to start|error from server",
        r"failed to solve|: failed! =>",
    ),
    rule(
        DECISIVE,
        "http|status|code",
        r"\bhttp/[\d.]{1,3}\"? 5\d\d\b|\b(?:http[_ ]?)?(?:status|code)(?:[_ ]?code)?\"?[ :=]{1,3}\"?5\d\d\b",
    ),
    rule(
        MARKED,
        "http|status",
        r"\bhttp/[\d.]{1,3}\"? 4\d\d\b|\bstatus(?:[ _]?code)?\"?[ :=]{1,3}\"?4\d\d\b",
        r"(?:^|[\s\[(])[45]\d\d\b.{0,40}https?://|https?://\S{1,200} .{0,40}\b[45]\d\d\b",
    ),
    # Records: members that say how it went.
    rule(
        DECISIVE,
        '"fail|"error|"fatal|"critical|"panic|":50|":60|false|"emerg|"alert|": 50|": 60|"crash|"timed',
        r"\"(?:status|state|result|outcome|conclusion|action|verdict|phase|event)\"\s?:\s?"
        r"\"(?:fail\w{0,5}|error\w{0,3}|crash\w{0,4}|timed[ _]?out|fatal)\"",
        r"\"(?:level|severity|lvl|levelname|log\.level|@l)\"\s?:\s?(?:\"(?:err\w{0,3}|fatal|crit\w{0,4}"
        r"|panic|emerg\w{0,5}"
        r"|alert)\"|[56]0\b)|\"(?:success|ok|passed|succeeded)\"\s?:\s?false",
    ),
    # Summaries.
    rule(
        MARKED,
        "fail|error|problem|fatal|offense|unreachable|violation",
        rf"\b{_SOME} (?:\w{{1,20}} )?(?:failed|failing|failures?|errors?|problems?|fatal|offenses?"
        rf"|violations?)\b",
        rf"\b(?:failed|failures?|errors?|unreachable)\"?[:=] *{_SOME}\b",
    ),
    # Levels of logs.
    rule(
        MARKED,
        "FATAL|CRITICAL|PANIC|EMERG|ALERT|SEVERE|level|lvl|severity",
        at_word(r"FATAL\b|CRITICAL\b|PANIC\b|EMERG\b|ALERT\b|SEVERE\b"),
        *(
            at_word(rf"{name}\"?[=:] ?\"?") + "(?:fatal|critical|panic|FATAL|CRITICAL)"
            for name in ("level", "lvl", "severity")
        ),
        is_exact=True,
    ),
    rule(
        MARKED,
        "ERR|FAIL|level|lvl|severity|[e|rror",
        at_word(r"ERROR\b|FAILURE\b|FAILED\b|FAIL\b|ERR\b"),
        *(at_word(rf"{name}\"?[=:] ?\"?") + "(?:err|ERR)" for name in ("level", "lvl", "severity")),
        start=r"\[error\]|[EF]\d{4} \d\d:\d\d:",
        is_exact=True,
    ),
    # A place in a source, and what is said of it; the number of a failed test.
    rule(
        SAID + 1,
        ".|) |line ",
        at_word(r"at \S{1,160} line \d+[.,]"),
        start=r"(?:\./|/|[a-z]:\\)?[\w./\\@+-]{1,160}\.[a-z]\w{0,9}(?::\d+(?::\d+)?"
        r"|\(\d+,\d+\)):? +(?:[a-z]{1,8}\d{2,5}\b|error|fail)"
        r"|(?:\./|/|[a-z]:\\)?[\w./\\@+-]{1,160}\.[a-z]\w{0,9}:\d+:\d+: (?!warning|note|remark|info)\S"
        r"| {0,4}\d{1,3}\) (?:test |\S{0,80}(?:test|spec|::|#|\.))",
    ),
    # Words.
    rule(
        SAID,
        "ERR|FAIL|FATAL|EXC",
        r"\b(?:[A-Z]{1,20}_){0,6}(?:ERROR|ERR|FAILED|FAILURE|FATAL|EXCEPTION)(?:_[A-Z]{1,20}){0,6}\b",
        is_exact=True,
    ),
    rule(
        SAID,
        "error|exception|fail|fatal|panic|abort|crash",
        at_word(
            "error|exception|failed|fails?|failure|fatal|panic|aborted|crash(?:ed)?",
            r"(?![\w./-]*\w)",
            not_after=r"[\w./-]",
        ),
    ),
    rule(
        HINT,
        "not|n't|unable|invalid|illegal|expected|assert|match|missing|unresolved|unsupported|reject|conflict"
        "|refused|denied|out|corrupt|overflow|abort|unknown|undefined|must|bad|wrong|violat|severity",
        at_word(
            r"cannot\b|can't\b|could ?n[o']t\b|unable\b|invalid\b|illegal\b|unexpected\b|expected\b"
            r"|assert\w{0,20}\b|mismatch\w{0,4}\b|missing\b|unresolved\b|unsupported\b|reject\w{0,4}\b"
            r"|conflict\w{0,4}\b|refused\b|denied\b|corrupt\w{0,4}\b|violat\w{0,5}\b|not found\b|not ok\b"
            r"|not allowed\b|not valid\b|not available\b|does not\b|must (?:not )?be\b|bad\b|wrong\b"
            r"|timed? ?out\b|overflow\b|abort\w{0,4}\b|unknown\b|undefined\b"
        ),
        r"\(severity: \d\)",
    ),
    rule(WARNING, "warn", r"\bwarn(?:ing)?s?\b"),
)
