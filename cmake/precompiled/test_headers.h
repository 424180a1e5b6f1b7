// Headers that nearly every test reads (cmake/penstock.cmake).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headers.h"
