import { choices } from '../../api/check-objects.ts';
import { checkDevice, type DeviceRequest } from '../../api/devices/device-request.ts';
import { choice, size, text, wholeNumber } from './kinds.ts';
import { grouped, type Option } from './option.ts';

const device: Option<DeviceRequest> = {
  describe:
    'device that computes: a hardware GPU if there is one, the CPU, any GPU, or several by number (auto, cpu, gpu or gpu:0,1)',
  group: 'Machine:',
  defaultText: 'auto',
  fallback: 'auto',
  read: checkDevice,
};

/** The devices and threads of a run. */
export const machineOptions = {
  device,
  ...grouped('Machine:', {
    deviceMemory: size('limit of the memory used on each GPU, such as 8GiB', {
      defaultText: 'until the GPU refuses',
    }),
    workers: wholeNumber(
      'CPU threads; any number gives the same result (for sgd see the end of train --help)',
      { least: 1, most: 256, defaultText: 'one per core; with a GPU three for four cores' },
    ),
  }),
};

/** For tests and demonstrations: the number of devices to simulate with one. */
export const fakeDevicesOption: Option<number | undefined> = {
  ...wholeNumber('devices in the place of one', { group: 'Machine:', least: 1, most: 16 }),
  hidden: true,
};

export const memoryBudgetOption = size('limit of the resident memory of the whole process, such as 4GiB', {
  group: 'Machine:',
  defaultText: "the machine's memory, or 0.8 of a container's limit",
});

export const spillDirOption = text(
  'folder for ratings, and for factors of ALS, that do not fit into --memory-budget; empty again at the end',
  { group: 'Machine:', defaultText: "the system's folder for temporary files" },
);

export const parquetBackendOption = choice('library that reads and writes Parquet', {
  group: 'Machine:',
  choices: choices.parquetBackends,
  defaultText: 'parquet-wasm',
});
