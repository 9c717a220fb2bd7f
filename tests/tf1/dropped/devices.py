"""tf.config.experimental as 1.15 had it: a processor that is cut into several devices."""

from __future__ import annotations

from tests.tf1.calls import separated

_CPU = "config = tf.config.experimental\ncpu = config.list_physical_devices('CPU')[0]\n"
_ONE = "config.set_virtual_device_configuration(cpu, [config.VirtualDeviceConfiguration()])\n"

VALUES: dict[str, list[str]] = {
    "config.experimental.get_virtual_device_configuration": [
        _CPU + _ONE + line
        for line in separated("""
result = [len(config.get_virtual_device_configuration(cpu))]
---
result = [str(each) for each in config.get_virtual_device_configuration(cpu)]
---
try:
    result = [config.get_virtual_device_configuration('a device')]
except ValueError:
    result = ['ValueError']
""")
    ],
    "config.experimental.set_virtual_device_configuration": [
        _CPU + line
        for line in separated(f"""
config.set_virtual_device_configuration(cpu, [config.VirtualDeviceConfiguration()] * 3)
result = [len(config.get_virtual_device_configuration(cpu))]
{_ONE}
---
try:
    config.set_virtual_device_configuration(cpu, [config.VirtualDeviceConfiguration(memory_limit=4)])
    result = []
except ValueError:
    result = ['ValueError']
""")
    ],
}
