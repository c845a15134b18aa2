import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';

/**
 * `auto`: a hardware GPU if there is one, else the CPU. `gpu`: a hardware or software adapter; an error
 * if there is none.
 */
export type DeviceName = 'auto' | 'cpu' | 'gpu';

const deviceNames: readonly DeviceName[] = ['auto', 'cpu', 'gpu'];

/** A device by name, or GPUs by number: 'gpu:0,1'. Cards are numbered from 0 by their PCI address. */
export type DeviceRequest = DeviceName | `gpu:${string}`;

/** Throws UsageError for another value; `option` is the name in the message. */
export function checkDevice(given: unknown, option = 'device'): DeviceRequest {
  const name = deviceNames.find((one) => one === given);
  if (name !== undefined) return name;
  if (typeof given !== 'string' || !/^gpu:\d{1,3}(,\d{1,3})*$/.test(given))
    throw new UsageError(
      `${option} must be auto, cpu, gpu or GPUs by number such as gpu:0,1, got ${shown(given)}`,
    );
  const cards = cardsOf(given as DeviceRequest) as readonly number[];
  const twice = cards.find((card, at) => cards.indexOf(card) !== at);
  if (twice !== undefined) throw new UsageError(`${option} ${given} names gpu:${twice} twice`);
  return given as DeviceRequest;
}

/** The requested GPU numbers, if any. */
export function cardsOf(request: DeviceRequest): readonly number[] | undefined {
  return request.startsWith('gpu:') ? request.slice('gpu:'.length).split(',').map(Number) : undefined;
}

/** Throws UsageError for a number of fake devices that is out of range, or combined with cards by number. */
export function checkFakeDevices(count: number | undefined, device: DeviceRequest): void {
  if (count === undefined) return;
  if (!Number.isInteger(count) || count < 1 || count > 16)
    throw new UsageError(`fakeDevices must be a whole number from 1 to 16, got ${shown(count)}`);
  if (device.startsWith('gpu:'))
    throw new UsageError(`fakeDevices cannot be used with device ${device}`, {
      advice: 'Leave one of them out',
    });
}
