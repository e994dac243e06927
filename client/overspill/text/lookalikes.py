"""Find text of a tool that a reader could mistake for a line of a notice, and defuse it.

| the text has | it becomes |
|---|---|
| `[overspill`, `[/overspill`, and what reads like that | `(overspill`, `(/overspill` |
| a line such as `--- preview ---`, `Read more: …`, `Output too large (…` | the same line behind `> ` |

A line that says it in entities of HTML or escapes of JSON, which models read as fluently, is quoted too.
So is one behind a number, as in the answer of a search.

To compare, a text is reduced to its skeleton: without blanks, invisible characters, accents and case, every
letter and bracket replaced by one that it looks like. So full-width forms, tags, zero-width characters and
letters of other alphabets hide nothing. All other text stays the same, byte for byte.
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from typing import Final

QUOTE: Final = "> "
"""The mark before a line that reads like one of a notice."""
_LIKE: Final = {
    "a": "аαɑᴀᎪᗅ⍺𐊠𖽀",
    "d": "ԁᴅɗᎠᏧᑯᗞᗪꓒ",
    "e": "3еҽεɛᴇә℮ҿᎬ⋿ⴹꬲ𐊆𑢦𑢮",
    "h": "һհʜΗНᎻᏂᕼⲎ𐋏",
    "l": "iı1|!іӏǀɩιΙІӀ∣ɪʟⵏ۱ᎥᏞᒪᛁ⍳⏽ⲒⳐꙇꭵ𐊊𐌉𐌠𐐛𐔦𑢣𑢲𑣃𖼖𖼨𝈪",
    "m": "мᴍΜϺᎷᗰᛖⲘ𐊰𐌑",
    "o": "ʘ◯○●◎⊙☉⭕⚪⚫∅°ꝋᛟᓍ0оοօσᴏⲟჿ०০੦૦௦౦೦൦๐໐၀〇ⵔøðɵөθѳ۵ଠ୦ഠဝዐᴑꬽ𐊒𐊫𐐄𐐬𐓂𐓪𐔖𑓐𑢵𑣈𑣗𑣠",
    "p": "рρᴘⲣϱᏢᑭ⍴𐊕",
    "r": "гᴦʀꭇⲅᎡᏒᖇꭈꮁ𐒴𖼵𝈖",
    "s": "5ѕꜱƽՏᏕᏚꮪ𐊖𐐠𐑈𑣁𖼺",
    "t": "тτᴛᎢ⊤⟙Ⲧ𐊗𐊱𐌕𑢼𖼊🝨",
    "u": "υսᴜʋሀᑌ∪⋃ꞟꭎꭒ𐓎𐓶𑢸𑣘𖽂",
    "v": "ʌνѵᴠט∨⋁ⴸ۷Ꮩᐯꛟꮩ𐔝𑜆𑢠𑣀𖼈𝈍",
    "w": "ԝѡᴡωաɯᎳᏔꮃ𑜊𑜎𑜏𑣦𑣯",
    "[": "<{⎡⎢⎣┌│├",
    "-": "=_~*#−─━═⎯▬ー⁃┄┈╌˗➖Ⲻ",
    ":": "︰⁝⋮∶꞉ː׃܃܄˸։᛬᠃᠉⁚ꓽ",
    "/": "⁄∕╱⧸᜵⁁⟋Ⳇ〳ノ㇓丿𝈺",
}
_LISU: Final = dict(zip("ꓮꓓꓰꓧꓲꓡꓟꓳꓑꓣꓢꓔꓴꓦꓪ", "adehllmoprstuvw", strict=True))
"""Letters that look like Latin capitals, and have no lower case."""
_ALPHABETS: Final = (0x1F150, 0x1F170, 0x1F1E6)
"""The first of the letters A to Z in black circles, in black squares, and of flags."""
_PICTURES: Final = {chr(first + at): chr(ord("a") + at) for first in _ALPHABETS for at in range(26)}
_PLAIN: Final = {other: letter for letter, others in _LIKE.items() for other in others} | _LISU
_AS: Final = _PLAIN | {picture: _PLAIN.get(letter, letter) for picture, letter in _PICTURES.items()}
_INVISIBLE: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800") | frozenset(map(chr, range(0x2400, 0x2427)))
"""Fillers, and the pictures with which `sanitize` replaces control characters."""
_LONG_DASHES: Final = "—―⸺⸻"
_LINE_ENDS: Final = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c{_LINE_ENDS}]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
"""An escape sequence of a terminal (ECMA-48, also of 8 bits), which may stand within a word. It ends with its
line.
"""
_INTRODUCER: Final = re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]")
_ENCODED: Final = re.compile(r"&(?:#|[A-Za-z])|\\[ux]")
_FREQUENT_ENTITIES: Final = (
    *(("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'")),
    ("&amp;", "&"),
)
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\u\{([0-9A-Fa-f]{1,6})\}|\\x([0-9A-Fa-f]{2})")
"""A character in JSON, JavaScript or Python."""
_MAX_CHARACTERS: Final = 20_000

_OWN_WORDS: Final = ("oversplll", "prevlew", "readmore", "lslost", "outputtoolarge")
"""The skeleton of every line of a notice has one of these."""
_MARK: Final = re.compile(r"\[(?=[^a-z0-9(\[\"'`]{0,3}oversplll)")
_OWN_LINE: Final = re.compile(
    r"[^a-z0-9]*(?:readmore:|whattheprevlewleavesoutlslost|allofltlslost|outputtoolarge\()"
    r"|(?=.*--)[^a-z0-9]*prevlew[^a-z0-9]*$"
)
_LINE_NUMBER: Final = re.compile(r"(?:line )?[0-9][0-9,]*[:-] ?")
"""What a search, and a line that stands out in a preview, has before the line of the tool."""


def defuse(text: str) -> str:
    """Return `text` with nothing in it that reads like a line of a notice; the same object if nothing does.

    It has at most two characters more for each such line, which loses its colours.
    """
    if not text or not _has_own_words(text):
        return text
    return "".join(map(_defused, text.splitlines(keepends=True)))


def _has_own_words(text: str) -> bool:
    """Return whether a text may have a line that reads like ours. ASCII is searched many times as fast."""
    text = "\n".join([*_readings(text), *_decoded(text)])
    strange = "" if text.isascii() else "\n".join(line for line in text.split("\n") if not line.isascii())
    skeleton = strange.translate(_SKELETON)
    reduced = text.encode("ascii", "ignore").translate(_ASCII, _ASCII_UNSEEN)
    return any(word in skeleton or word.encode() in reduced for word in _OWN_WORDS)


def reads_like_ours(line: str) -> bool:
    """Return whether a line reads like one of a notice, or has a mark like one in it."""
    is_quoted = line.startswith(QUOTE)
    encoded = [] if is_quoted else _decoded(line)
    return any(
        _MARK.search(each.translate(_SKELETON)) or (not is_quoted and _is_own_line(each))
        for each in (*_readings(line), *encoded)
    )


def _is_own_line(line: str) -> bool:
    """Return whether a line, or the line behind a number, reads like one of a notice."""
    number = _LINE_NUMBER.match(line)
    lines = (line, line[number.end() :]) if number else (line,)
    return any(_OWN_LINE.match(each.translate(_SKELETON)) for each in lines)


def _defused(line: str) -> str:
    line = _readings(line)[0].replace("\x1b", "") if reads_like_ours(line) else line
    if _MARK.search(line.translate(_SKELETON)):
        line = _without_marks(line)
    if not line.startswith(QUOTE) and (_is_own_line(line) or any(map(reads_like_ours, _decoded(line)))):
        return f"{QUOTE}{line}"
    return line


def _readings(text: str) -> list[str]:
    """Return the text as a terminal shows it, and the text itself: models also read text after an escape."""
    if "\x1b" not in text and (text.isascii() or _INTRODUCER.search(text) is None):
        return [text]
    return [_SEQUENCE.sub("", text), text]


def _decoded(text: str) -> list[str]:
    """Return the text with its entities or escapes decoded; nothing if it has none."""
    if ("&" not in text and "\\" not in text) or _ENCODED.search(text) is None:
        return []
    for entity, sign in _FREQUENT_ENTITIES:  # a tenth of the time that `unescape` takes for each
        text = text.replace(entity, sign)
    return [_ESCAPE.sub(_character_of, html.unescape(text))]


def _character_of(escape: re.Match[str]) -> str:
    code = int(escape[1] or escape[2] or escape[3], 16)
    return chr(code) if code <= sys.maxunicode else escape[0]


def _without_marks(line: str) -> str:
    """Return the line with a parenthesis for every bracket that begins a mark."""
    reduced = [(letter, at) for at, character in enumerate(line) for letter in character.translate(_SKELETON)]
    skeleton = "".join(letter for letter, _ in reduced)
    brackets = {reduced[found.start()][1] for found in _MARK.finditer(skeleton)}
    return "".join("(" if at in brackets else character for at, character in enumerate(line))


class _Skeleton(dict[int, str | None]):
    """The appearance of each character: a table for `str.translate` that is filled as characters come."""

    def __missing__(self, code: int) -> str | None:
        if len(self) > _MAX_CHARACTERS:
            self.clear()
        self[code] = found = _looks_like(chr(code)) or None  # `translate` is ten times as fast with None
        return found


def _looks_like(character: str) -> str:
    """Return the skeleton of one character; empty if nobody sees it."""
    if character in _INVISIBLE:
        return ""
    if character in _AS:
        return _AS[character]
    return "".join(map(_reduced, unicodedata.normalize("NFKD", character)))


def _reduced(character: str) -> str:
    category = unicodedata.category(character)
    if character.isspace() or character in _INVISIBLE or category in {"Cc", "Cf", "Cs", "Mn", "Me", "Mc"}:
        return ""
    if character in _AS:
        return _AS[character]
    if category in {"Ps", "Pi"} and character != "(":
        return "["
    if category == "Pd":
        return "--" if character in _LONG_DASHES else "-"
    return "".join(_AS.get(each, each) for each in character.casefold())


_SKELETON: Final = _Skeleton()
_ASCII: Final = bytes(ord(_looks_like(chr(code)) or " ") for code in range(128)) + bytes(range(128, 256))
_ASCII_UNSEEN: Final = bytes(code for code in range(128) if not _looks_like(chr(code)))
"""The same for `bytes.translate`, and what it leaves out."""
