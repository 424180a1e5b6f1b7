#include "penstock/plan/fingerprint.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "penstock/base/hash.h"
#include "penstock/base/wire.h"
#include "penstock/data/encode.h"

// A message is written as (field number, value) pairs in the order of numbers,
// unset fields left out: a field added to the schema later changes nothing for
// plans that do not use it. A node's digest is that of its operator and of its
// inputs' digests, so that numbers of nodes and nodes out of reach play no
// part.

namespace penstock::plan {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;
};

Digest DigestOf(const std::string& bytes) {
  return {HashBytes(bytes, 1), HashBytes(bytes, 2)};
}

void Write(const Digest& digest, WireWriter& out) {
  out.Varint(digest.high);
  out.Varint(digest.low);
}

Digest DigestOf(const Plan& plan);

// Options other than these say how to run, not what to compute.
bool IsMeant(const Options& options) { return options.has_deterministic(); }

// Whether the node hands its input on as it is.
bool IsTransparent(const Node& node) {
  return node.has_prefetch() ||
         (node.has_with_options() && !IsMeant(node.with_options().options()));
}

// A chunk's bytes with zeros between its buffers, where writers need not write.
std::string WithoutGaps(const std::string& bytes) {
  Buffer copy = Buffer::Allocate(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(copy.MutableAs<char>(), bytes.data(), bytes.size());
  }
  absl::StatusOr<Chunk> chunk = Decode(copy);
  if (!chunk.ok()) return bytes;
  const size_t size = EncodedSize(*chunk);
  Buffer out = Buffer::Allocate(size);
  std::memset(out.MutableAs<char>(), 0, size);
  Encode(*chunk, out.MutableAs<std::byte>());
  return std::string(out.As<char>(), size);
}

bool IsLeftOut(const Message& message, const FieldDescriptor& field) {
  if (field.message_type() == Location::descriptor()) return true;
  const google::protobuf::Descriptor* type = message.GetDescriptor();
  const std::string& name = field.name();
  if (type == Node::descriptor()) {
    return name == "inputs" || name == "instance" || name == "output" ||
           name == "cardinality" || name == "name";
  }
  if (type == Function::descriptor()) {
    // Of a function that makes a dataset, the output means nothing, and steps
    // beside Python say what that does.
    const auto& function = static_cast<const Function&>(message);
    return name == "name" || name == "origins" ||
           (name == "output" && function.has_dataset()) ||
           ((name == "steps" || name == "outputs") && function.has_python());
  }
  if (type == Function::Step::descriptor()) return name == "origin";
  if (type == Options::descriptor()) return name != "deterministic";
  if (type == Distribution::descriptor()) {
    return name != "plan" && name != "visitation" && name != "is_ordered" &&
           name != "sharding";
  }
  if (type == Received::descriptor()) return name == "rows";
  if (type == Rows::descriptor()) return name == "kind";
  if (type == Generator::descriptor()) return name == "capture";
  if (type == Function::Python::descriptor()) {
    return name == "capture" || name == "reason" || name == "is_pure";
  }
  if (type == ElementSpec::Dict::descriptor()) return name == "order";
  return name == "parallelism" || name == "buffer_bytes" ||
         name == "log_warning";
}

// Structures whose tensors only hold places: their specs are not looked at.
bool IsStructureAlone(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Descriptor* type = message.GetDescriptor();
  return (type == Function::descriptor() && field.name() == "output") ||
         (type == Zip::descriptor() && field.name() == "structure") ||
         (type == Values::descriptor() && field.name() == "structure");
}

class Canonical final {
 public:
  // With `is_structure`, tensors count but not their specs.
  static std::string Bytes(const Message& message, bool is_structure) {
    WireWriter out;
    if (message.GetDescriptor() == Plan::descriptor()) {
      Write(DigestOf(static_cast<const Plan&>(message)), out);
      return out.Take();
    }
    if (is_structure && message.GetDescriptor() == TensorSpec::descriptor()) {
      return out.Take();
    }
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    std::sort(fields.begin(), fields.end(), [](const auto* a, const auto* b) {
      return a->number() < b->number();
    });
    for (const FieldDescriptor* field : fields) {
      if (!IsLeftOut(message, *field)) {
        Field(message, *field, is_structure, out);
      }
    }
    return out.Take();
  }

 private:
  static void Field(const Message& message, const FieldDescriptor& field,
                    bool is_structure, WireWriter& out) {
    is_structure |= IsStructureAlone(message, field);
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated()) {
      std::string value = Value(message, field, -1, is_structure);
      // A shape that is not set is a scalar's.
      if (value.empty() && field.message_type() == PartialShape::descriptor()) {
        return;
      }
      out.Varint(field.number());
      out.Bytes(value);
      return;
    }
    std::vector<std::string> items;
    items.reserve(reflection.FieldSize(message, &field));
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      items.push_back(Value(message, field, i, is_structure));
    }
    if (field.is_map()) std::sort(items.begin(), items.end());
    out.Varint(field.number());
    out.Varint(items.size());
    for (const std::string& item : items) out.Bytes(item);
  }

  // One value of a field: item `i`, or of a field that is not repeated, -1.
  static std::string Value(const Message& message, const FieldDescriptor& field,
                           int i, bool is_structure) {
    const Reflection& r = *message.GetReflection();
    const FieldDescriptor* f = &field;
    WireWriter out;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        out.Signed(i < 0 ? r.GetInt32(message, f)
                         : r.GetRepeatedInt32(message, f, i));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        out.Signed(i < 0 ? r.GetInt64(message, f)
                         : r.GetRepeatedInt64(message, f, i));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        out.Varint(i < 0 ? r.GetUInt32(message, f)
                         : r.GetRepeatedUInt32(message, f, i));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        out.Varint(i < 0 ? r.GetUInt64(message, f)
                         : r.GetRepeatedUInt64(message, f, i));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        out.Varint(std::bit_cast<uint64_t>(
            i < 0 ? r.GetDouble(message, f)
                  : r.GetRepeatedDouble(message, f, i)));
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        out.Varint(
            std::bit_cast<uint32_t>(i < 0 ? r.GetFloat(message, f)
                                          : r.GetRepeatedFloat(message, f, i)));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        out.Bool(i < 0 ? r.GetBool(message, f)
                       : r.GetRepeatedBool(message, f, i));
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        out.Signed(i < 0 ? r.GetEnumValue(message, f)
                         : r.GetRepeatedEnumValue(message, f, i));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        if (message.GetDescriptor() == Rows::descriptor() &&
            field.number() == Rows::kChunkFieldNumber) {
          return WithoutGaps(r.GetString(message, f));
        }
        return i < 0 ? r.GetString(message, f)
                     : r.GetRepeatedString(message, f, i);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Bytes(i < 0 ? r.GetMessage(message, f)
                           : r.GetRepeatedMessage(message, f, i),
                     is_structure);
    }
    return out.Take();
  }
};

// Each node's, by place.
std::vector<Digest> DigestsOf(const Plan& plan) {
  std::vector<Digest> nodes;
  for (const Node& node : plan.nodes()) {
    std::vector<Digest> inputs;
    for (uint32_t input : node.inputs()) {
      // A plan need not be valid to have a fingerprint.
      if (input < nodes.size()) inputs.push_back(nodes[input]);
    }
    if (IsTransparent(node) && inputs.size() == 1) {
      nodes.push_back(inputs[0]);
      continue;
    }
    WireWriter out;
    out.Bytes(Canonical::Bytes(node, /*is_structure=*/false));
    for (const Digest& input : inputs) Write(input, out);
    nodes.push_back(DigestOf(out.bytes()));
  }
  return nodes;
}

Digest DigestOf(const Plan& plan) {
  const std::vector<Digest> nodes = DigestsOf(plan);
  WireWriter out;
  if (!nodes.empty()) Write(nodes.back(), out);
  for (const TensorSpec& bound : plan.bound()) {
    out.Bytes(Canonical::Bytes(bound, /*is_structure=*/false));
  }
  return DigestOf(out.bytes());
}

}  // namespace

std::string Fingerprint(const Plan& plan) {
  const Digest digest = DigestOf(plan);
  return absl::StrFormat("%016x%016x", digest.high, digest.low);
}

std::vector<std::string> NodeFingerprints(const Plan& plan) {
  std::vector<std::string> names;
  for (const Digest& digest : DigestsOf(plan)) {
    names.push_back(absl::StrFormat("%016x%016x", digest.high, digest.low));
  }
  return names;
}

}  // namespace penstock::plan
