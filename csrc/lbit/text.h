// Text of files: UTF-8, in which a half of a surrogate pair may stand alone, as JSON lets one write it. Names
// with one are refused later, because it is not printable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace latentbit {

constexpr size_t kWhole = SIZE_MAX;  // no limit on letters

// Whether these bytes are UTF-8 as it is exchanged: shortest forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(const char* text, size_t n);
// Appends one code point.
void append_letter(std::string& text, uint32_t letter);
size_t n_letters(const std::string& text);
std::string first_letters(const std::string& text, size_t n);
// No controls, separators other than a space, invisible marks, surrogates or private letters.
bool is_printable(const std::string& text);
bool has_surrogate(const std::string& text);
// As it stands in a message: 'in quotes', what is not printable escaped.
std::string quoted(const std::string& text);
std::string quoted(const std::vector<std::string>& texts);  // ['a', 'b']
std::string listed(const std::vector<int64_t>& numbers);    // [1, 2]

// Sizes of a file multiply to more than 64 bits hold.
__extension__ typedef __int128 Wide;
std::string decimal(Wide number);

}  // namespace latentbit
