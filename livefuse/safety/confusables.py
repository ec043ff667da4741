"""Text as it looks, not as it is coded: letters of other scripts, signs that cannot be seen. Pure.

The pairs are what a reader takes for one another among Latin, Cyrillic and Greek letters; the full
table of such pairs is Unicode's UTS 39, of which this is the part that spells names.
"""

from __future__ import annotations

import unicodedata
from typing import Final

# Before case is folded: a capital may look like another letter than its small one does.
_LOOKS_LIKE: Final = (
    # Cyrillic
    "АA ВB ЕE ЅS ІI ЈJ КK МM НH ОO РP СC ТT УY ХX ЗZ ГR аa вb еe ѕs іi јj кk мm нh оo рp сc тt уy"
    " хx гr пn иu ԁd ԛq ԝw һh ӏl ѵv ԍg ӕæ єe ґr ьb"
    # Greek
    " ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX αa βb γy εe ηn ιi κk μu νv οo ρp τt υu χx ωw ςc σo"
    # Latin, some of them letters of other languages
    " ıi łl øo đd ħh ŧt ɑa ɡg ɩi ʟl ɪi ɴn ʀr ʏy ʙb ʜh ᴀa ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz ſs"
)
_TABLE: Final = {ord(pair[0]): pair[1:] for pair in _LOOKS_LIKE.split()}
# Letters in circles, squares and flags that compatibility forms leave alone.
for _first in (0x1F150, 0x1F170, 0x1F1E6):
    _TABLE.update({_first + i: chr(ord("a") + i) for i in range(26)})
_UNSEEN: Final = frozenset({"Mn", "Me", "Cf", "Co", "Cn"})
# Digits and signs that stand for letters; 1 for two of them.
_SIGNS: Final = dict(zip("034578@$", "oeastbas", strict=True))
_DIGITS: Final = tuple(str.maketrans({**_SIGNS, **dict.fromkeys("1!|", one)}) for one in "il")


def fold_text(text: str) -> str:
    """Return `text` in one form (NFKC), without marks and unseen signs, look-alikes made Latin."""
    text = unicodedata.normalize("NFKC", text).translate(_TABLE)
    text = unicodedata.normalize("NFKD", text.casefold())
    kept = (c for c in text if unicodedata.category(c) not in _UNSEEN)
    return unicodedata.normalize("NFC", "".join(kept)).translate(_TABLE)


def list_readings(text: str) -> list[str]:
    """Return folded text as it is, and as it reads with digits taken for letters (tr0mp, m1a)."""
    return list(dict.fromkeys([text, *(text.translate(digits) for digits in _DIGITS)]))
