/* Text that does not repeat: words of two to four syllables, of which there are some millions.
 *
 * Text of a few words that come again and again compresses to nothing and fills no index, so that a gateway that stores
 * or searches what passes looks cheaper than it is. */
#include <stdint.h>
#include <string.h>

static uint64_t chance = 0x9e3779b97f4a7c15ULL;

static unsigned draw(unsigned below) {
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return (unsigned)(chance >> 33) % below;
}

static void fill_with_words(char *at, size_t size) {
  static const char syllables[64][4] = {
      "ba", "be", "bri", "ca", "cor", "da", "den", "di", "e",  "el", "en", "fa", "fer", "fo", "ga", "gen",
      "ha", "hol", "i",  "in", "ka", "ket", "la", "le", "lin", "lo", "ma", "men", "mi", "mo", "na", "ne",
      "no", "o",  "or", "pa", "per", "pi", "po", "qua", "ra", "re", "ri", "ro", "sa", "se", "sha", "si",
      "so", "sta", "ta", "ter", "ti", "to", "tra", "u", "un", "va", "ven", "vi", "wa", "wil", "ya", "zo"};
  char *end = at + size;
  for (unsigned left = 2 + draw(3); at < end; left--) {
    const char *piece = left ? syllables[draw(64)] : " ";
    if (!left) left = 3 + draw(3);
    for (; *piece && at < end; piece++) *at++ = *piece;
  }
}
