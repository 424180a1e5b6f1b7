#include "penstock/service/windows/metrics.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/util/json_util.h"

namespace penstock::windows {

void BeginMetric(std::string& out, std::string_view name, std::string_view doc,
                 std::string_view kind) {
  absl::StrAppend(&out, "# HELP ", std::string(name), " ", std::string(doc),
                  "\n# TYPE ", std::string(name), " ", std::string(kind), "\n");
}

void AddMetric(std::string& out, std::string_view name, uint64_t value,
               const std::string& labels) {
  absl::StrAppend(&out, std::string(name), labels, " ", value, "\n");
}

std::string Label(const std::string& name, const std::string& value) {
  return absl::StrCat(
      name, "=\"",
      absl::StrReplaceAll(value,
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Nothing that is shown cannot be said in JSON.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

}  // namespace penstock::windows
