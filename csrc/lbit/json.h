// JSON as the RFC has it, for the header of a packed file: no NaN, no number that overflows, no key twice, no
// depth bomb.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lbit/text.h"

namespace latentbit {

constexpr int kMaxDepth = 100;
constexpr int kMaxDigits = 20;  // of an integer: more than 64 bits can hold

class Json {
 public:
  enum class Kind : uint8_t { null, boolean, integer, large, real, text, list, object };

  Json() = default;
  Json(Json&&) noexcept = default;
  Json& operator=(Json&&) noexcept = default;

  static Json boolean(bool value);
  static Json integer(int64_t value);
  static Json large(std::string digits, double value);  // an integer beyond 64 bits
  static Json real(double value);
  static Json text(std::string value);
  static Json list(std::vector<Json> items);
  static Json object(std::vector<std::string> keys, std::vector<Json> items);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return is(Kind::integer) || is(Kind::large) || is(Kind::real); }
  bool is_true() const { return is(Kind::boolean) && integer_; }
  int64_t as_integer() const { return integer_; }
  double as_double() const;
  const std::string& as_text() const { return more_->text; }
  const std::vector<Json>& items() const { return more_->items; }
  const std::vector<std::string>& keys() const { return more_->keys; }
  std::vector<Json>& items() { return more_->items; }
  // The value of a key of an object; null if it has none.
  const Json* find(const std::string& key) const;

  // As it stands in a message, cut off after so many letters.
  std::string shown(size_t most) const;
  // As JSON text in UTF-8.
  std::string json() const;

 private:
  struct More {
    std::string text;
    std::vector<Json> items;
    std::vector<std::string> keys;
  };
  void append_shown(std::string& out, size_t most_bytes) const;

  Kind kind_ = Kind::null;
  union {
    int64_t integer_ = 0;
    double real_;
  };
  std::unique_ptr<More> more_;  // apart, so that a long list of numbers takes little
};

// The value that a text describes; `what` names the text in the PackedFileError.
Json parse_json(const std::string& text, const std::string& what);

}  // namespace latentbit
