"""Where an element of ``nvidia-smi -q -x`` stands in the text dump: one set of field names for both."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LEAVES = {
    # clocks, also those of maxima and applications
    "graphics_clock": "graphics",
    "sm_clock": "sm",
    "mem_clock": "memory",
    "video_clock": "video",
    # what holds the clocks
    "gpu_idle": "idle",
    "hw_thermal_slowdown": "hw_slowdown.hw_thermal_slowdown",
    "hw_power_brake_slowdown": "hw_slowdown.hw_power_brake_slowdown",
    "display_clocks_setting": "display_clock_setting",
    # PCIe
    "max_link_gen": "max",
    "current_link_gen": "current",
    "device_current_link_gen": "device_current",
    "max_device_link_gen": "device_max",
    "max_host_link_gen": "host_max",
    "max_link_width": "max",
    "current_link_width": "current",
    "pci_bus_id": "bus_id",
    "replay_counter": "replays_since_reset",
    "replay_rollover_counter": "replay_number_rollovers",
    # modes
    "current_mig": "current",
    "pending_mig": "pending",
    "current_ecc": "current",
    "pending_ecc": "pending",
    # memory errors
    "sram_uncorrectable_secded": "sram_uncorrectable_sec-ded",
    "pending_blacklist": "pending_page_blacklist",
    "pending_retirement": "pending_page_blacklist",
    "remapped_row_corr": "correctable_error",
    "remapped_row_unc": "uncorrectable_error",
    "remapped_row_corr_inactive": "inactive_correctable_error",
    "remapped_row_unc_inactive": "inactive_uncorrectable_error",
    "remapped_row_pending": "pending",
    "remapped_row_failure": "remapping_failure_occurred",
    # temperatures
    "gpu_temp": "gpu_current_temp",
    "gpu_temp_tlimit": "gpu_t.limit_temp",
    "gpu_temp_max_threshold": "gpu_shutdown_temp",
    "gpu_temp_max_tlimit_threshold": "gpu_shutdown_t.limit_temp",
    "gpu_temp_slow_threshold": "gpu_slowdown_temp",
    "gpu_temp_slow_tlimit_threshold": "gpu_slowdown_t.limit_temp",
    "gpu_temp_max_gpu_threshold": "gpu_max_operating_temp",
    "gpu_temp_max_gpu_tlimit_threshold": "gpu_max_operating_t.limit_temp",
    "memory_temp": "memory_current_temp",
    "gpu_temp_max_mem_threshold": "memory_max_operating_temp",
    "gpu_temp_max_mem_tlimit_threshold": "memory_max_operating_t.limit_temp",
    # power and load
    "instant_power_draw": "instantaneous_power_draw",
    "gpu_util": "gpu",
    "memory_util": "memory",
    "encoder_util": "encoder",
    "decoder_util": "decoder",
    "jpeg_util": "jpeg",
    "ofa_util": "ofa",
    # identity and processes
    "uuid": "gpu_uuid",
    "pid": "process_id",
    "process_name": "name",
    "used_memory": "used_gpu_memory",
}
_SECTIONS = {
    "pci_gpu_link_info": "gpu_link_info",
    "pcie_gen": "pcie_generation",
    "link_widths": "link_width",
    "row_remapper_histogram": "bank_remap_availability_histogram",
    "multiple_single_bit_retirement.retired_count": "single_bit_ecc",
    "double_bit_retirement.retired_count": "double_bit_ecc",
    "processes.process_info": "processes",
    "mig_devices.mig_device": "mig_device",
    "clocks_event_reasons_counters.sw_power_cap": "clocks_event_reasons_counters.sw_power_capping",
    "clocks_event_reasons_counters.sw_therm_slowdown": "clocks_event_reasons_counters.sw_thermal_slowdown",
    "clocks_event_reasons_counters.hw_therm_slowdown": "clocks_event_reasons_counters.hw_thermal_slowdown",
    "clocks_event_reasons_counters.hw_power_brake": "clocks_event_reasons_counters.hw_power_braking",
}
_REPEATED = re.compile(r"(?:clocks_(?:event|throttle)_reasons?(?:_counters)?|row_remapper_histogram)_(?=.)")
_SECTION = re.compile(
    r"(?<![^.])(?:" + "|".join(map(re.escape, sorted(_SECTIONS, key=len, reverse=True))) + r")(?![^.])"
)


def text_path(tags: Sequence[str]) -> tuple[str, ...]:
    """The path that the text dump gives to the element at the end of ``tags`` (which begin below ``gpu``)."""
    *above, leaf = tags
    leaf = _REPEATED.sub("", leaf, count=1) if above else leaf
    leaf = _LEAVES.get(leaf, leaf)
    path = ".".join([*above, leaf]).lower()
    path = _SECTION.sub(lambda found: _SECTIONS[found.group()], path)
    return tuple(part.replace("\0", ".") for part in path.replace("_t.limit_", "_t\0limit_").split("."))
