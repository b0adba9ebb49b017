"""How words sound in English: Soundex and Metaphone. Letters count without their accents, other signs not at all."""

import re
import unicodedata

_DIGITS = {
    letter: digit for digit, letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1) for letter in letters
}
_VOWELS = frozenset("AEIOU")
_FRONT = frozenset("EIY")


def soundex(word: str) -> str:
    """Return the American Soundex code of a word, as the National Archives define it; empty if it has no letters A-Z.

    The first letter, then the digits of the consonants after it, to four signs: equal digits side by side, or with only
    H or W between them, count once; vowels and Y separate.
    """
    letters = _letters(word)
    if not letters:
        return ""
    code, last = letters[0], _DIGITS.get(letters[0], 0)
    for letter in letters[1:]:
        digit = _DIGITS.get(letter, 0)
        if digit and digit != last:
            code += str(digit)
        if letter not in "HW":
            last = digit
    return code[:4].ljust(4, "0")


def metaphone(word: str) -> str:
    """Return the Metaphone code of a word (Lawrence Philips, 1990), without a limit of its length.

    ``0`` stands for *th*, ``X`` for *sh*.
    """
    letters = _beginning(_letters(word))
    letters = re.sub(r"([A-BD-Z])\1+", r"\1", letters)  # equal letters side by side count once, but for C
    return "".join(_sound(letters, place) for place in range(len(letters)))


def _letters(word: str) -> str:
    plain = unicodedata.normalize("NFD", word).upper()
    return "".join(letter for letter in plain if "A" <= letter <= "Z")


def _beginning(letters: str) -> str:
    if letters[:2] in ("AE", "GN", "KN", "PN", "WR"):
        return letters[1:]
    if letters[:2] == "WH":
        return "W" + letters[2:]
    return "S" + letters[1:] if letters[:1] == "X" else letters


def _sound(word: str, at: int) -> str:
    """Return what one letter adds to the code."""
    letter, before, after = word[at], word[at - 1 : at] if at else "", word[at + 1 : at + 2]
    rest = word[at:]
    match letter:
        case "A" | "E" | "I" | "O" | "U":
            return letter if at == 0 else ""
        case "B":
            return "" if before == "M" and not after else "B"
        case "C":
            return _c(rest, before)
        case "D":
            return "J" if rest[1:3] in ("GE", "GY", "GI") else "T"
        case "G":
            return _g(word, at)
        case "H":
            return "H" if after in _VOWELS and after and (not before or before not in "CGPST") else ""
        case "K":
            return "" if before == "C" else "K"
        case "P":
            return "F" if after == "H" else "P"
        case "Q":
            return "K"
        case "S":
            return "X" if after == "H" or rest[1:3] in ("IO", "IA") else "S"
        case "T":
            return _t(rest)
        case "V":
            return "F"
        case "W" | "Y":
            return letter if after in _VOWELS and after else ""
        case "X":
            return "KS"
        case "Z":
            return "S"
        case _:
            return letter


def _c(rest: str, before: str) -> str:
    if rest[1:3] == "IA":
        return "X"
    if rest[1:2] and rest[1] in _FRONT:
        return "" if before == "S" else "S"
    if rest[1:2] == "H":
        return "K" if before == "S" else "X"
    return "K"


def _g(word: str, at: int) -> str:
    after, rest = word[at + 1 : at + 2], word[at + 2 :]
    if at and word[at - 1] == "D" and after and after in _FRONT:
        return ""  # part of the J that the D gave
    if after == "H":
        return "K" if rest and rest[0] in _VOWELS else ""
    if after == "N" and rest in ("", "ED"):
        return ""
    return "J" if after and after in _FRONT else "K"


def _t(rest: str) -> str:
    if rest[1:3] in ("IO", "IA"):
        return "X"
    if rest[1:2] == "H":
        return "0"
    return "" if rest[1:3] == "CH" else "T"
