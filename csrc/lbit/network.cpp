#include "lbit/network.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <system_error>

#include "lbit/container.h"
#include "lbit/limits.h"
#include "lbit/packed_file_error.h"
#include "lbit/rules.h"

namespace latentbit {
namespace {

using Kind = Json::Kind;

// The tensors of each layer by role, in the order of the file; taken out one layer at a time.
struct Owned {
  std::vector<std::string> owners;
  std::map<std::string, std::map<std::string, Tensor>> tensors;

  explicit Owned(const Tensors& all) {
    for (const auto& [name, tensor] : all) {
      const size_t dot = name.rfind('.');
      const std::string owner = dot == std::string::npos ? "" : name.substr(0, dot);
      if (!tensors.count(owner)) owners.push_back(owner);
      tensors[owner][dot == std::string::npos ? name : name.substr(dot + 1)] = tensor;
    }
  }
  std::map<std::string, Tensor> take(const std::string& owner) {
    const auto found = tensors.find(owner);
    if (found == tensors.end()) return {};
    auto taken = std::move(found->second);
    tensors.erase(found);
    return taken;
  }
};

// One entry of the layer list.
Layer layer_of(Json entry, Owned& owned) {
  const Json* name = entry.is(Kind::object) ? entry.find("name") : nullptr;
  if (!name || !name->is(Kind::text))
    throw PackedFileError("a layer is not a JSON object with a name: " + entry.shown(80));
  Layer layer;
  layer.name = name->as_text();
  const Json* op = entry.find("op");
  layer.op = !op ? "None" : op->is(Kind::text) ? op->as_text() : op->shown(kWhole);
  for (size_t i = 0; i < entry.keys().size(); ++i)
    if (entry.keys()[i] == "inputs") layer.inputs = std::move(entry.items()[i]);
  if (!layer.inputs.is(Kind::list))
    throw PackedFileError("layer " + quoted(first_letters(layer.name, 80)) +
                          ": inputs must be a list of names");
  layer.attributes = std::move(entry);
  layer.tensors = owned.take(layer.name);
  return layer;
}

bool is_plain(const Json& value) {
  if (value.is(Kind::text)) return !has_surrogate(value.as_text());
  if (!value.is(Kind::list) && !value.is(Kind::object)) return true;
  for (const std::string& key : value.keys())
    if (has_surrogate(key)) return false;
  for (const Json& item : value.items())
    if (!is_plain(item)) return false;
  return true;
}

// The lists of the description, and what describes input and output.
class Description {
 public:
  explicit Description(const std::string& text) : document_(parse_json(text, "the network description")) {
    if (!document_.is(Kind::object)) throw PackedFileError("the network description is not a JSON object");
    std::set<std::string> extra;
    for (const std::string& key : document_.keys())
      if (key != "input" && key != "layers" && key != "classes" && key != "mean" && key != "std" &&
          key != "source")
        extra.insert(key);
    if (!extra.empty())
      throw PackedFileError("the network description has " +
                            first_letters(quoted(std::vector<std::string>(extra.begin(), extra.end())), 80) +
                            ", unknown to this program");
    for (const char* key : {"input", "layers", "classes", "mean", "std"}) {
      const Json* found = document_.find(key);
      if (found && !found->is(Kind::list))
        throw PackedFileError(std::string(key) + " of the network description must be a list");
    }
    const Json* source = document_.find("source");
    if (source && !source->is(Kind::object)) throw PackedFileError("source must be a JSON object");
  }

  const Json* find(const char* key) const { return document_.find(key); }
  // Out of the document.
  Json take(const char* key) {
    for (size_t i = 0; i < document_.keys().size(); ++i)
      if (document_.keys()[i] == key) return std::move(document_.items()[i]);
    return {};
  }

  Shape input() const {
    const Json* sizes = find("input");
    Shape shape;
    bool fits = sizes && sizes->items().size() == 3;
    for (size_t i = 0; fits && i < 3; ++i) {
      const Json& size = sizes->items()[i];
      fits = size.is(Kind::integer) && size.as_integer() > 0 && size.as_integer() <= kMaxNumbers;
      shape.push_back(fits ? size.as_integer() : 0);
    }
    if (!fits)
      throw PackedFileError("input " + (sizes ? sizes->shown(80) : "[]") +
                            " is not [channels, height, width], each from 1 to " +
                            std::to_string(kMaxNumbers));
    return shape;
  }

  std::optional<std::vector<std::string>> classes(int64_t n_outputs) const {
    const Json* names = find("classes");
    if (!names) return {};
    std::vector<std::string> found;
    for (const Json& name : names->items())
      if (name.is(Kind::text) && is_printable(name.as_text())) found.push_back(name.as_text());
    if (static_cast<int64_t>(names->items().size()) != n_outputs || found.size() != names->items().size())
      throw PackedFileError("classes must be " + std::to_string(n_outputs) +
                            " printable names, one per output");
    return found;
  }

  std::optional<std::vector<double>> per_channel(const char* key, int64_t n_channels) const {
    const Json* numbers = find(key);
    if (!numbers) return {};
    std::vector<double> found;
    for (const Json& number : numbers->items())
      if (number.is_number() && std::abs(number.as_double()) < 1e30) found.push_back(number.as_double());
    if (static_cast<int64_t>(numbers->items().size()) != n_channels ||
        found.size() != numbers->items().size())
      throw PackedFileError(std::string(key) + " must be " + std::to_string(n_channels) +
                            " numbers, one per input channel");
    return found;
  }

 private:
  Json document_;
};

// What comes after the layers: the output, layers that lead nowhere, names and numbers of the ends.
void check_ends(Network& network, Description& description) {
  std::vector<bool> used(network.layers.size());
  for (const Layer& layer : network.layers)
    for (int source : layer.sources)
      if (source != kNetworkInput) used[source] = true;
  for (size_t i = 0; i + 1 < used.size(); ++i)
    if (!used[i])
      throw PackedFileError("layer " + quoted(network.layers[i].name) + ": nothing uses its output");
  const Layer& last = network.layers.back();
  if (last.form.bits)
    throw PackedFileError("layer " + quoted(last.name) + ": the output of a network must be real");
  network.classes = description.classes(last.form.shape[0]);
  network.mean = description.per_channel("mean", network.input[0]);
  network.std = description.per_channel("std", network.input[0]);
  if (network.std)
    for (double std : *network.std)
      if (!(std > 0)) throw PackedFileError("std must be positive");
  network.source = description.take("source");
  if (!is_plain(network.source)) throw PackedFileError("source must hold plain JSON values");
}

void need_room(uint64_t n) {
  if (n > kMaxFileBytes)
    throw PackedFileError(std::to_string(n) + " bytes; more than " + std::to_string(kMaxFileBytes));
}

class File {
 public:
  // Non-blocking, or opening a pipe would wait for a writer.
  explicit File(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) fail();
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[noreturn]] static void fail() {
    throw PackedFileError("cannot be read: " + std::generic_category().message(errno));
  }

  size_t size() const {
    struct stat status;
    if (::fstat(descriptor_, &status)) fail();
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      fail();
    }
    if (!S_ISREG(status.st_mode)) throw PackedFileError("not a regular file");
    need_room(static_cast<uint64_t>(status.st_size));
    return static_cast<size_t>(status.st_size);
  }

  void read(char* to, size_t n) const {
    for (size_t done = 0; done < n;) {
      const ssize_t some = ::read(descriptor_, to + done, n - done);
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) fail();
      if (some == 0) throw PackedFileError("the file shrank while it was read");
      done += static_cast<size_t>(some);
    }
  }

 private:
  int descriptor_;
};

// Room for n bytes, aligned for 64-bit words.
std::shared_ptr<char> room_for(size_t n) {
  return {reinterpret_cast<char*>(new uint64_t[n / 8 + 1]),
          [](char* bytes) { delete[] reinterpret_cast<uint64_t*>(bytes); }};
}

Network parsed(std::string text, const Tensors& tensors) {
  Description description(text);
  Network network;
  network.description = std::move(text);
  Owned owned(tensors);
  Json layers = description.take("layers");
  if (layers.is(Kind::list))
    for (Json& entry : layers.items()) network.layers.push_back(layer_of(std::move(entry), owned));
  for (const std::string& owner : owned.owners)
    if (owned.tensors.count(owner))
      throw PackedFileError("tensors of " + quoted(first_letters(owner, 80)) + " belong to no layer");
  network.input = description.input();
  check_layers(network);
  check_ends(network, description);
  return network;
}

Network network_in(const char* bytes, size_t n, std::shared_ptr<const void> content) {
  Container container = open_container(bytes, n);
  const auto text = [&](const char* key) {
    const Json* value = container.metadata.find(key);
    return value ? value->as_text() : "";
  };
  if (text("format") != "lbit")
    throw PackedFileError("a safetensors file, but not a packed network (format is not lbit)");
  const std::string version = text("version");
  if (version != "1" && version != "2")
    throw PackedFileError("version " + quoted(first_letters(version, 20)) + "; this program reads 1 and 2");
  Network network = parsed(text("network"), container.tensors);
  if (version_of(network) > version)
    throw PackedFileError("says version " + version + ", but holds what came with version " +
                          version_of(network));
  network.content = std::move(content);
  return network;
}

}  // namespace

Network network_of(std::string description, const Tensors& tensors) {
  return parsed(std::move(description), tensors);
}

Network network_in_copy(const void* bytes, size_t n) {
  need_room(n);
  const std::shared_ptr<char> copy = room_for(n);
  if (n) std::memcpy(copy.get(), bytes, n);
  return network_in(copy.get(), n, copy);
}

Network network_in_memory(const void* bytes, size_t n) {
  need_room(n);
  if (reinterpret_cast<uintptr_t>(bytes) % alignof(uint64_t)) return network_in_copy(bytes, n);
  return network_in(static_cast<const char*>(bytes), n, nullptr);
}

// Read, not mapped: the process would die of SIGBUS if somebody cut the file short while it is mapped.
Network network_in_file(const std::string& path) {
  std::shared_ptr<char> content;
  size_t n = 0;
  {
    const File file(path);
    n = file.size();
    content = room_for(n);
    file.read(content.get(), n);
  }
  return network_in(content.get(), n, content);
}

int resize_of(const Network& network) {
  if (!network.source.is(Kind::object)) return 0;
  const Json* resize = network.source.find("resize");
  const bool fits =
      resize && resize->is(Kind::integer) && resize->as_integer() > 0 && resize->as_integer() <= kMaxSize;
  return fits ? static_cast<int>(resize->as_integer()) : 0;
}

}  // namespace latentbit
