#include "lbit/container.h"

#include <algorithm>

#include "lbit/limits.h"
#include "lbit/packed_file_error.h"

namespace latentbit {
namespace {

using Kind = Json::Kind;

struct Span {
  std::string name;
  Tensor tensor;
  int64_t begin, end;
};

bool is_size(const Json& value) {
  return value.is(Kind::integer) && value.as_integer() >= 0 && value.as_integer() <= kMaxFileBytes;
}

std::string dtype_list() {
  std::string names;
  for (int i = 0; i < static_cast<int>(Dtype::other); ++i)
    names += (i ? ", " : "") + std::string(kDtypeNames[i]);
  return names;
}

// One entry of the header, checked by itself.
Span span_of(const std::string& name, const Json& entry) {
  const size_t letters = n_letters(name);
  if (letters > kMaxFullName)
    throw PackedFileError("tensor " + quoted(first_letters(name, 40)) + "...: a name of " +
                          std::to_string(letters) + " letters, more than " + std::to_string(kMaxFullName));
  const auto fail = [&](const std::string& reason) {
    throw PackedFileError("tensor " + quoted(name) + ": " + reason);
  };
  const bool is_entry = entry.is(Kind::object) && entry.keys().size() == 3;
  const Json* dtype = is_entry ? entry.find("dtype") : nullptr;
  const Json* shape = is_entry ? entry.find("shape") : nullptr;
  const Json* offsets = is_entry ? entry.find("data_offsets") : nullptr;
  if (!dtype || !shape || !offsets) fail("its entry must hold dtype, shape and data_offsets");

  Span span{name, {}, 0, 0};
  if (dtype->is(Kind::text))
    for (int i = 0; i < static_cast<int>(Dtype::other); ++i)
      if (dtype->as_text() == kDtypeNames[i]) span.tensor.dtype = static_cast<Dtype>(i);
  if (span.tensor.dtype == Dtype::other) fail("dtype " + dtype->shown(40) + " is not one of " + dtype_list());
  if (!shape->is(Kind::list) || shape->items().empty() || shape->items().size() > kMaxRank)
    fail("the shape must list 1 to " + std::to_string(kMaxRank) + " sizes");
  Wide n_bytes = item_bytes(span.tensor.dtype);
  for (const Json& size : shape->items()) {
    if (!is_size(size) || size.as_integer() == 0)
      fail("the shape " + shape->shown(80) + " has a size out of range");
    span.tensor.shape.push_back(size.as_integer());
    n_bytes *= size.as_integer();
  }
  if (!offsets->is(Kind::list) || offsets->items().size() != 2 || !is_size(offsets->items()[0]) ||
      !is_size(offsets->items()[1]))
    fail("data_offsets must be two byte offsets");
  span.begin = offsets->items()[0].as_integer();
  span.end = offsets->items()[1].as_integer();
  if (span.end - span.begin != n_bytes)
    fail(dtype->as_text() + " " + shape->shown(kWhole) + " is " + decimal(n_bytes) +
         " bytes, its offsets hold " + std::to_string(span.end - span.begin));
  if (span.begin % item_bytes(span.tensor.dtype))
    fail("byte " + std::to_string(span.begin) + " is not aligned for " + dtype->as_text());
  return span;
}

uint64_t little_endian(const char* bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The JSON between the length and the data; PackedFileError says what is wrong with the length.
std::string header_of(const char* bytes, size_t n) {
  if (n < 8) throw PackedFileError(std::to_string(n) + " bytes are too few for a packed network");
  const uint64_t n_header = little_endian(bytes);
  if (n_header > kMaxHeaderBytes || n_header > n - 8) {
    if (n > 8 && bytes[8] != '{')
      throw PackedFileError("this is not a packed network: `latentbit pack RUN` makes one, a .lbit file");
    throw PackedFileError("the header claims " + std::to_string(n_header) + " bytes, the file holds " +
                          std::to_string(n - 8) + " after its length (and a header has at most " +
                          std::to_string(kMaxHeaderBytes) + "); is it a .lbit file, and complete?");
  }
  if (n_header % 8)
    throw PackedFileError("the header length " + std::to_string(n_header) + " is not a multiple of 8");
  if (!is_utf8(bytes + 8, n_header)) throw PackedFileError("the header is not UTF-8 text");
  return {bytes + 8, n_header};
}

}  // namespace

Container open_container(const char* bytes, size_t n) {
  const std::string text = header_of(bytes, n);
  Json header = parse_json(text, "the header");
  if (!header.is(Kind::object)) throw PackedFileError("the header is not a JSON object");
  Container container;
  std::vector<Span> spans;
  for (size_t i = 0; i < header.keys().size(); ++i)
    if (header.keys()[i] == "__metadata__") container.metadata = std::move(header.items()[i]);
  if (!container.metadata.is(Kind::object) ||
      !std::all_of(container.metadata.items().begin(), container.metadata.items().end(),
                   [](const Json& value) { return value.is(Kind::text); }))
    throw PackedFileError("the header has no __metadata__ of strings");
  for (size_t i = 0; i < header.keys().size(); ++i)
    if (header.keys()[i] != "__metadata__") spans.push_back(span_of(header.keys()[i], header.items()[i]));

  // The spans must tile the data without a gap, an overlap or a rest.
  const char* data = bytes + 8 + text.size();
  const auto n_data = static_cast<int64_t>(n - 8 - text.size());
  std::vector<const Span*> sorted;
  for (Span& span : spans) sorted.push_back(&span);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Span* a, const Span* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  int64_t at = 0;
  for (const Span* span : sorted) {
    if (span->begin != at)
      throw PackedFileError("tensor " + quoted(span->name) + ": starts at byte " +
                            std::to_string(span->begin) + ", expected at " + std::to_string(at));
    at = span->end;
  }
  if (at != n_data)
    throw PackedFileError("the tensors end at byte " + std::to_string(at) + ", the data has " +
                          std::to_string(n_data));
  for (Span& span : spans) {
    span.tensor.data = data + span.begin;
    container.tensors.emplace_back(std::move(span.name), std::move(span.tensor));
  }
  return container;
}

}  // namespace latentbit
