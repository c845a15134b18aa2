import { requireBase } from '../../api/memory-budget.ts';
import { parseSize } from '../../api/sizes.ts';
import { parquetBackendNames } from '../../connectors/parquet/backend.ts';
import { UsageError } from '../../engine/errors.ts';
import { choice, list, shown, textOf, wholeNumber } from './kinds.ts';
import type { Option } from './option.ts';

const devices = ['auto', 'cpu'] as const;

const device: Option<(typeof devices)[number]> = {
  describe: 'where kernels run; this version trains on the CPU',
  group: 'Machine:',
  choices: devices,
  defaultText: 'auto',
  fallback: 'auto',
  read: (given, flag) => {
    const found = devices.find((name) => name === given);
    if (found !== undefined) return found;
    if (typeof given === 'string' && /^gpu(:|$)/.test(given)) {
      throw new UsageError(`${flag} ${given}: this version trains on the CPU only`, { advice: 'Leave --device out, or give auto or cpu' });
    }
    throw new UsageError(`${flag} must be ${list(devices)}, got ${shown(given)}`);
  },
};

/** Where and with how much the work is done. */
export const machineOptions = {
  device,
  workers: wholeNumber({ describe: 'CPU threads; the result is the same for any number', group: 'Machine:', least: 1, most: 256, defaultText: 'one a core' }),
};

/** In bytes. */
export const memoryBudgetOption: Option<number | undefined> = {
  describe: 'resident memory of the whole process, such as 4GiB',
  group: 'Machine:',
  defaultText: 'what the machine has',
  fallback: undefined,
  read: (given, flag) => {
    const bytes = parseSize(typeof given === 'number' ? given : textOf(given, flag), flag);
    requireBase(bytes, `${flag} ${shown(given)}`);
    return bytes;
  },
};

export const parquetBackendOption = choice({ describe: 'library that reads and writes Parquet', group: 'Machine:', choices: parquetBackendNames, defaultText: 'parquet-wasm' });
