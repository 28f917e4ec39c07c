#include "lbit/text.h"

#include <algorithm>
#include <cstdio>

namespace latentbit {
namespace {

struct Range {
  uint32_t first, last;
};

// Unicode's categories Cc, Cf, Cs, Co, Zl, Zp and Zs without the space.
constexpr Range kUnprintable[] = {
    {0x0, 0x1F},        {0x7F, 0xA0},       {0xAD, 0xAD},        {0x600, 0x605},     {0x61C, 0x61C},
    {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},      {0x8E2, 0x8E2},     {0x1680, 0x1680},
    {0x180E, 0x180E},   {0x2000, 0x200F},   {0x2028, 0x202F},    {0x205F, 0x2064},   {0x2066, 0x206F},
    {0x3000, 0x3000},   {0xD800, 0xF8FF},   {0xFEFF, 0xFEFF},    {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD},
    {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},  {0x1D173, 0x1D17A}, {0xE0001, 0xE0001},
    {0xE0020, 0xE007F}, {0xF0000, 0xFFFFD}, {0x100000, 0x10FFFD}};

bool printable(uint32_t letter) {
  for (const Range& range : kUnprintable)
    if (letter <= range.last) return letter < range.first;
  return true;
}

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The code point at `at`, which moves behind it. The text is whole: is_utf8, or made of append_letter.
uint32_t next_letter(const std::string& text, size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  uint32_t letter = first < 0xE0 ? first & 0x1F : first < 0xF0 ? first & 0x0F : first & 0x07;
  while (at < text.size() && continues(text[at]))
    letter = letter << 6 | (static_cast<unsigned char>(text[at++]) & 0x3F);
  return letter;
}

void append_escaped(std::string& out, uint32_t letter) {
  char escape[16];
  if (letter == '\t' || letter == '\n' || letter == '\r')
    std::snprintf(escape, sizeof escape, "\\%c", letter == '\t' ? 't' : letter == '\n' ? 'n' : 'r');
  else
    std::snprintf(escape, sizeof escape,
                  letter < 0x100     ? "\\x%02x"
                  : letter < 0x10000 ? "\\u%04x"
                                     : "\\U%08x",
                  static_cast<unsigned>(letter));
  out += escape;
}

}  // namespace

bool is_utf8(const char* text, size_t n) {
  for (size_t i = 0; i < n;) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length == 0 || first > 0xF4 || i + length > n) return false;
    for (size_t k = 1; k < length; ++k)
      if (!continues(text[i + k])) return false;
    const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
      return false;
    i += length;
  }
  return true;
}

void append_letter(std::string& text, uint32_t letter) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (letter < 0x80) return put(letter);
  if (letter < 0x800) {
    put(0xC0 | letter >> 6);
  } else if (letter < 0x10000) {
    put(0xE0 | letter >> 12);
    put(0x80 | (letter >> 6 & 0x3F));
  } else {
    put(0xF0 | letter >> 18);
    put(0x80 | (letter >> 12 & 0x3F));
    put(0x80 | (letter >> 6 & 0x3F));
  }
  put(0x80 | (letter & 0x3F));
}

size_t n_letters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

std::string first_letters(const std::string& text, size_t n) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (!continues(text[at]) && n-- == 0) break;
  return text.substr(0, at);
}

bool is_printable(const std::string& text) {
  for (size_t at = 0; at < text.size();)
    if (!printable(next_letter(text, at))) return false;
  return true;
}

bool has_surrogate(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const uint32_t letter = next_letter(text, at);
    if (letter >= 0xD800 && letter <= 0xDFFF) return true;
  }
  return false;
}

std::string quoted(const std::string& text) {
  const bool single = text.find('\'') != std::string::npos, twofold = text.find('"') != std::string::npos;
  const char quote = single && !twofold ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const uint32_t letter = next_letter(text, at);
    if (letter == '\\' || letter == static_cast<uint32_t>(quote)) out += '\\';
    if (printable(letter))
      append_letter(out, letter);
    else
      append_escaped(out, letter);
  }
  return out + quote;
}

std::string quoted(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (size_t i = 0; i < texts.size(); ++i) out += (i ? ", " : "") + quoted(texts[i]);
  return out + "]";
}

std::string listed(const std::vector<int64_t>& numbers) {
  std::string out = "[";
  for (size_t i = 0; i < numbers.size(); ++i) out += (i ? ", " : "") + std::to_string(numbers[i]);
  return out + "]";
}

std::string decimal(Wide number) {
  const bool negative = number < 0;
  std::string digits;
  do {
    const int digit = static_cast<int>(number % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
    number /= 10;
  } while (number != 0);
  if (negative) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

}  // namespace latentbit
