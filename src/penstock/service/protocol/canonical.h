// Bytes that are the same for equal messages, whoever writes them: what ids and
// hashes are made of.
#pragma once

#include <string>

#include "google/protobuf/message_lite.h"

namespace penstock::service {

// SerializeAsString() writes maps in an order of its own.
std::string CanonicalBytes(const google::protobuf::MessageLite& message);

}  // namespace penstock::service
