#include "lbit/json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <locale>
#include <sstream>

#include "lbit/packed_file_error.h"

namespace latentbit {
namespace {

// Streams with the classic locale: strtod and printf write a comma where the program's locale has one.
double parsed_double(const std::string& digits) {
  std::istringstream stream(digits);
  stream.imbue(std::locale::classic());
  double value = 0;
  stream >> value;
  // What underflows is a tiny number or 0; only what overflows is refused.
  if (stream.fail() && std::abs(value) >= std::numeric_limits<double>::max())
    return value > 0 ? HUGE_VAL : -HUGE_VAL;
  return value;
}

// The fewest digits that give the number back.
std::string shortest(double value) {
  const bool scientific = value != 0 && (std::abs(value) < 1e-4 || std::abs(value) >= 1e16);
  for (int digits = 1;; ++digits) {
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream.precision(digits);
    stream << std::scientific;
    stream.precision(digits - 1);
    stream << value;
    std::string text = stream.str();
    if (digits < 17 && parsed_double(text) != value) continue;
    if (scientific) return text;
    // 1.25e+01 -> 12.5
    const int exponent = std::stoi(text.substr(text.find('e') + 1));
    std::ostringstream plain;
    plain.imbue(std::locale::classic());
    plain.precision(std::max(1, digits - 1 - exponent));
    plain << std::fixed << value;
    return plain.str();
  }
}

class Parser {
 public:
  explicit Parser(const std::string& text) : at_(text.data()), begin_(at_), end_(at_ + text.size()) {}

  Json whole() {
    skip_space();
    Json value = this->value(1);
    skip_space();
    if (at_ != end_) fail("something follows the value");
    return value;
  }

  struct TooDeep {};

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(at_ - begin_));
  }
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }
  bool take(char wanted) {
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool take(const char* word) {
    const std::string wanted(word);
    if (static_cast<size_t>(end_ - at_) < wanted.size() ||
        wanted.compare(0, wanted.size(), at_, wanted.size()))
      return false;
    at_ += wanted.size();
    return true;
  }

  Json value(int depth) {
    if (at_ == end_) fail("the text ends where a value is expected");
    if (*at_ == '{' || *at_ == '[') {
      if (depth > kMaxDepth) throw TooDeep();
      return *at_++ == '{' ? object(depth) : list(depth);
    }
    if (*at_ == '"') {
      ++at_;
      return Json::text(text());
    }
    if (take("null")) return {};
    if (take("true")) return Json::boolean(true);
    if (take("false")) return Json::boolean(false);
    for (const char* constant : {"NaN", "Infinity", "-Infinity"})
      if (take(constant)) throw std::runtime_error(std::string(constant) + " is not JSON");
    return number();
  }

  Json list(int depth) {
    std::vector<Json> items;
    skip_space();
    if (take(']')) return Json::list(std::move(items));
    for (;;) {
      skip_space();
      items.push_back(value(depth + 1));
      skip_space();
      if (take(']')) return Json::list(std::move(items));
      if (!take(',')) fail("a ',' or ']' is missing");
    }
  }

  Json object(int depth) {
    std::vector<std::string> keys;
    std::vector<Json> items;
    skip_space();
    if (!take('}'))
      for (;;) {
        skip_space();
        if (!take('"')) fail("a key in double quotes is missing");
        keys.push_back(text());
        skip_space();
        if (!take(':')) fail("a ':' is missing");
        skip_space();
        items.push_back(value(depth + 1));
        skip_space();
        if (take('}')) break;
        if (!take(',')) fail("a ',' or '}' is missing");
      }
    std::vector<const std::string*> sorted;
    for (const std::string& key : keys) sorted.push_back(&key);
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return *a < *b; });
    for (size_t i = 1; i < sorted.size(); ++i)
      if (*sorted[i] == *sorted[i - 1]) throw std::runtime_error("a key appears twice in one object");
    return Json::object(std::move(keys), std::move(items));
  }

  std::string text() {
    std::string out;
    for (;;) {
      const char* from = at_;
      while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) ++at_;
      out.append(from, at_);
      if (at_ == end_) fail("a string has no end");
      if (take('"')) return out;
      if (*at_ != '\\') fail("a control character stands in a string");
      ++at_;
      if (at_ == end_) fail("a string has no end");
      const char escape = *at_++;
      static constexpr char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
      if (escape == 'u') {
        append_letter(out, unicode());
        continue;
      }
      const char* found = std::find(kFrom, kFrom + 8, escape);
      if (found == kFrom + 8) fail("an escape is unknown");
      out += kTo[found - kFrom];
    }
  }

  uint32_t hexadecimal() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      if (at_ == end_) fail("a string has no end");
      const char c = *at_++;
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("an escape \\u needs four hexadecimal digits");
      value = value << 4 | static_cast<uint32_t>(digit);
    }
    return value;
  }

  // Behind \u: a letter, or a pair of halves; a half alone stays what it is.
  uint32_t unicode() {
    const uint32_t high = hexadecimal();
    if (high < 0xD800 || high > 0xDBFF || end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') return high;
    const char* back = at_;
    at_ += 2;
    const uint32_t low = hexadecimal();
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    at_ = back;
    return high;
  }

  bool digits() {
    const char* from = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != from;
  }

  Json number() {
    const char* from = at_;
    take('-');
    if (!take('0') && !digits()) {
      at_ = from;
      fail("a value is expected");
    }
    const char* integer_end = at_;
    if (take('.') && !digits()) at_ = integer_end;
    const char* fraction_end = at_;
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (!take('-')) take('+');
      if (!digits()) at_ = fraction_end;
    }
    const std::string digits(from, at_);
    if (at_ != integer_end) {
      const double value = parsed_double(digits);
      if (!std::isfinite(value))
        throw std::runtime_error("the number " + digits.substr(0, 40) + " is too large");
      return Json::real(value);
    }
    if (digits.size() > kMaxDigits + 1)
      throw std::runtime_error("the number " + digits.substr(0, kMaxDigits) + "... has " +
                               std::to_string(digits.size()) + " digits");
    Wide value = 0;
    for (char c : digits)
      if (c != '-') value = 10 * value + (c - '0');
    if (digits[0] == '-') value = -value;
    if (value < INT64_MIN || value > INT64_MAX) return Json::large(digits, parsed_double(digits));
    return Json::integer(static_cast<int64_t>(value));
  }

  const char *at_, *begin_, *end_;
};

}  // namespace

Json Json::boolean(bool value) {
  Json json;
  json.kind_ = Kind::boolean;
  json.integer_ = value;
  return json;
}
Json Json::integer(int64_t value) {
  Json json;
  json.kind_ = Kind::integer;
  json.integer_ = value;
  return json;
}
Json Json::large(std::string digits, double value) {
  Json json = text(std::move(digits));
  json.kind_ = Kind::large;
  json.real_ = value;
  return json;
}
Json Json::real(double value) {
  Json json;
  json.kind_ = Kind::real;
  json.real_ = value;
  return json;
}
Json Json::text(std::string value) {
  Json json;
  json.kind_ = Kind::text;
  json.more_ = std::make_unique<More>();
  json.more_->text = std::move(value);
  return json;
}
Json Json::list(std::vector<Json> items) {
  Json json;
  json.kind_ = Kind::list;
  json.more_ = std::make_unique<More>();
  json.more_->items = std::move(items);
  return json;
}
Json Json::object(std::vector<std::string> keys, std::vector<Json> items) {
  Json json = list(std::move(items));
  json.kind_ = Kind::object;
  json.more_->keys = std::move(keys);
  return json;
}

double Json::as_double() const { return is(Kind::integer) ? static_cast<double>(integer_) : real_; }

const Json* Json::find(const std::string& key) const {
  for (size_t i = 0; i < keys().size(); ++i)
    if (keys()[i] == key) return &items()[i];
  return nullptr;
}

std::string Json::shown(size_t most) const {
  std::string out;
  append_shown(out, most > SIZE_MAX / 4 ? SIZE_MAX : 4 * most);  // a letter is 4 bytes or fewer
  return first_letters(out, most);
}

void Json::append_shown(std::string& out, size_t most_bytes) const {
  if (out.size() > most_bytes) return;
  switch (kind_) {
    case Kind::null:
      out += "None";
      return;
    case Kind::boolean:
      out += integer_ ? "True" : "False";
      return;
    case Kind::integer:
      out += std::to_string(integer_);
      return;
    case Kind::large:
      out += more_->text;
      return;
    case Kind::real:
      out += shortest(real_);
      return;
    case Kind::text:
      out += quoted(more_->text);
      return;
    case Kind::list:
    case Kind::object:
      break;
  }
  const bool is_object = is(Kind::object);
  out += is_object ? '{' : '[';
  for (size_t i = 0; i < items().size() && out.size() <= most_bytes; ++i) {
    if (i) out += ", ";
    if (is_object) out += quoted(keys()[i]) + ": ";
    items()[i].append_shown(out, most_bytes);
  }
  out += is_object ? '}' : ']';
}

std::string Json::json() const {
  const auto text_of = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      if (c == '"' || c == '\\')
        out += std::string("\\") + c;
      else
        out += static_cast<unsigned char>(c) < 0x20 ? std::string(escape) : std::string(1, c);
    }
    return out + "\"";
  };
  if (is(Kind::null)) return "null";
  if (is(Kind::boolean)) return integer_ ? "true" : "false";
  if (is(Kind::text)) return text_of(more_->text);
  if (!is(Kind::list) && !is(Kind::object)) return shown(kWhole);
  std::string out = is(Kind::object) ? "{" : "[";
  for (size_t i = 0; i < items().size(); ++i) {
    if (i) out += ", ";
    if (is(Kind::object)) out += text_of(keys()[i]) + ": ";
    out += items()[i].json();
  }
  return out + (is(Kind::object) ? "}" : "]");
}

Json parse_json(const std::string& text, const std::string& what) {
  try {
    return Parser(text).whole();
  } catch (const Parser::TooDeep&) {
    throw PackedFileError(what + " is nested too deeply");
  } catch (const std::runtime_error& error) {
    throw PackedFileError(what + " is not valid JSON: " + error.what());
  }
}

}  // namespace latentbit
