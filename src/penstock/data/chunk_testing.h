// For tests: chunks as text, and columns in one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/data/chunk.h"

namespace penstock {

// Elements as text: numbers as they are, strings in quotes, arrays in brackets,
// several components in parentheses. An error is "!" and its code.
std::vector<std::string> ToText(const Chunk& chunk);
std::vector<std::string> ToText(const Column& column);

// A ragged column of int64 vectors, each in memory of its own.
Column RaggedInts(const std::vector<std::vector<int64_t>>& rows);
// A ragged column of string vectors.
Column RaggedStrings(const std::vector<std::vector<std::string>>& rows);

Chunk ChunkOf(std::vector<Column> columns, std::vector<RowError> errors = {});

}  // namespace penstock
