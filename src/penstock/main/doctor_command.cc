#include "penstock/main/doctor_command.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "penstock/main/dispatcher_command.h"
#include "penstock/main/settings.h"
#include "penstock/main/worker_command.h"

namespace penstock {
namespace {

struct Patient {
  std::string_view name;
  const Schema& (*schema)();
  std::vector<std::string> (*faults)(const Settings& settings);
};
constexpr Patient kDispatcher = {"dispatcher", DispatcherSchema,
                                 DispatcherFaults};
constexpr Patient kWorker = {"worker", WorkerSchema, WorkerFaults};

// The settings of the server, as this command takes them.
Schema SchemaOf(const Patient& patient) {
  Schema schema = patient.schema();
  schema.command = "doctor";
  schema.words = "[dispatcher|worker]";
  schema.summary =
      "Looks at the settings of a dispatcher or a worker, as `penstock\n"
      "dispatcher` and `penstock worker` would read them, and lists what is\n"
      "unsafe or slow. Runs nothing.\n";
  schema.example = "penstock doctor worker --dispatcher head:5050 --cpu 64";
  return schema;
}

bool SaysAnything(const Schema& schema, const Settings& settings) {
  return std::ranges::any_of(schema.settings, [&](const Setting& each) {
    return !settings.source(each.name).empty();
  });
}

void Print(std::string_view name, const std::vector<std::string>& faults) {
  std::cout << name << "\n";
  for (const std::string& each : faults) std::cout << "- " << each << "\n";
  if (faults.empty()) std::cout << "Nothing unsafe or slow was found.\n";
}

}  // namespace

int RunDoctor(const std::vector<std::string>& args) {
  std::vector<std::string> flags = args;
  const Patient* named = nullptr;
  for (const Patient* each : {&kDispatcher, &kWorker}) {
    if (!args.empty() && args[0] == each->name) named = each;
  }
  if (named != nullptr) flags.erase(flags.begin());
  const Patient& first = named != nullptr ? *named : kDispatcher;
  const Schema schema = SchemaOf(first);
  const ReadResult read = ReadSettings(schema, flags);
  if (!read.settings) return read.exit_code;
  if (!read.settings->words().empty()) {
    std::cerr << "penstock doctor: expected dispatcher or worker first, and "
                 "flags; got '"
              << read.settings->words()[0] << "'\n";
    return 2;
  }
  const std::vector<std::string> faults = first.faults(*read.settings);
  Print(first.name, faults);
  bool is_well = faults.empty();
  if (args.empty()) {
    const Schema other = SchemaOf(kWorker);
    const ReadResult found = ReadSettings(other, {});
    if (!found.settings) return found.exit_code;
    if (SaysAnything(other, *found.settings)) {
      const std::vector<std::string> more = WorkerFaults(*found.settings);
      Print(kWorker.name, more);
      is_well = is_well && more.empty();
    }
  }
  return is_well ? 0 : 1;
}

}  // namespace penstock
