// Numbers as Prometheus reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "google/protobuf/message.h"

namespace penstock::windows {

// A number's description, which comes before its values.
void BeginMetric(std::string& out, std::string_view name, std::string_view doc,
                 std::string_view kind = "gauge");
// `labels` is empty, or "{...}" around some of Label().
void AddMetric(std::string& out, std::string_view name, uint64_t value,
               const std::string& labels = "");
std::string Label(const std::string& name, const std::string& value);

// A proto as JSON, fields that are unset included.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace penstock::windows
