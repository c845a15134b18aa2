import { parseSize } from '../../api/sizes.ts';
import type { AssumedDevice } from '../../api/training/plans/plan-of-problem.ts';
import { UsageError } from '../../engine/errors.ts';
import { flagName } from '../options/option.ts';

/** Most devices of a plan. */
const MOST_DEVICES = 64;

/** Parses --devices: "4x12GB", or a list of their memory. Throws UsageError for flags of real devices. */
export function assumedDevicesOf(devices: string, given: ReadonlySet<string>): AssumedDevice[] {
  const idle = (['device', 'deviceMemory', 'workers', 'fakeDevices'] as const).find((name) =>
    given.has(name),
  );
  if (idle !== undefined)
    throw new UsageError(`--${flagName(idle)} cannot be used with --devices`, {
      advice: 'Leave one of them out',
    });
  return devices.split(',').flatMap(devicesOf);
}

/** "4x12GB", or "2x4x12GB" for two sockets with four devices each. */
function devicesOf(text: string): AssumedDevice[] {
  const [, sockets, each = '1', size] =
    /^\s*(?:(\d{1,3})\s*x\s*(?=\d{1,3}\s*x))?(?:(\d{1,3})\s*x)?\s*(.+)$/i.exec(text) ?? [];
  const count = Number(each) * Number(sockets ?? 1);
  if (size !== undefined && /^[\d.]+$/.test(size))
    throw new UsageError(`--devices needs a unit of memory after ${size}`, {
      advice: 'Write 4x12GB, or 4x12GiB',
    });
  if (size === undefined || count < 1 || count > MOST_DEVICES)
    throw new UsageError(`--devices must be devices with their memory, got ${JSON.stringify(text)}`, {
      advice: `Give up to ${MOST_DEVICES} of them, such as 4x12GB, 80GB,141GB, or 2x4x12GB for two sockets`,
    });
  return Array.from({ length: count }, (_, n) => ({
    bytes: parseSize(size, '--devices'),
    ...(sockets === undefined ? {} : { socket: Math.floor(n / Number(each)) }),
  }));
}
