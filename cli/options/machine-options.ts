import { requireBase } from '../../api/memory-budget.ts';
import { parseSize } from '../../api/sizes.ts';
import { parquetBackendNames } from '../../connectors/parquet/backend.ts';
import { UsageError } from '../../engine/errors.ts';
import { choice, list, shown, textOf, wholeNumber } from './kinds.ts';
import type { Option } from './option.ts';

const devices = ['auto', 'cpu', 'gpu'] as const;

const device: Option<(typeof devices)[number]> = {
  describe: 'device that computes: a hardware GPU if there is one, the CPU, or any GPU',
  group: 'Machine:',
  choices: devices,
  defaultText: 'auto',
  fallback: 'auto',
  read: (given, flag) => {
    const found = devices.find((name) => name === given);
    if (found !== undefined) return found;
    if (typeof given === 'string' && given.startsWith('gpu:')) {
      throw new UsageError(`${flag} ${given}: this version uses one GPU at a time, the one that the system puts first`, { advice: 'Give --device gpu' });
    }
    throw new UsageError(`${flag} must be ${list(devices)}, got ${shown(given)}`);
  },
};

/** In bytes. */
const deviceMemory: Option<number | undefined> = {
  describe: "bound on the GPU's memory that is used, such as 8GiB",
  group: 'Machine:',
  defaultText: 'until the GPU refuses',
  fallback: undefined,
  read: (given, flag) => parseSize(typeof given === 'number' ? given : textOf(given, flag), flag),
};

/** The devices and threads of a run. */
export const machineOptions = {
  device,
  deviceMemory,
  workers: wholeNumber({ describe: 'CPU threads; any number gives the same result (for sgd see the end of train --help)', group: 'Machine:', least: 1, most: 256, defaultText: 'one a core' }),
};

/** In bytes. */
export const memoryBudgetOption: Option<number | undefined> = {
  describe: 'bound on the resident memory of the whole process, such as 4GiB',
  group: 'Machine:',
  defaultText: "the machine's memory",
  fallback: undefined,
  read: (given, flag) => {
    const bytes = parseSize(typeof given === 'number' ? given : textOf(given, flag), flag);
    requireBase(bytes, `${flag} ${shown(given)}`);
    return bytes;
  },
};

export const parquetBackendOption = choice({ describe: 'library that reads and writes Parquet', group: 'Machine:', choices: parquetBackendNames, defaultText: 'parquet-wasm' });
