import { h200Info } from '../devices/device-info.ts';
import type { Machine } from '../../../api/devices/open-devices.ts';
import type { ProbeOutcome } from '../../../gpu/probe/probe-webgpu.ts';

/** A card as a probe finds it. */
export const card = { name: 'a card', vendor: 'v', architecture: 'a', isFallback: false, features: [] };

/** A machine with that outcome of the probe. */
export function machineWith(
  outcome: ProbeOutcome,
  open: Machine['open'] = () => Promise.reject(new Error('the machine must not be opened')),
): Machine {
  const unasked = () => Promise.reject(new Error('no memory is asked for'));
  return {
    hasGraphicsDevice: () => true,
    known: () => undefined,
    probe: async () => outcome,
    note: async () => {},
    open,
    findCards: () => [],
    memoryUsed: unasked,
  };
}

type Opened = Awaited<ReturnType<Machine['open']>>;

/** A GPU that was opened and does nothing. */
export const openedCard = (name = 'a card', software = false, close = async () => {}): Opened =>
  ({ info: { ...h200Info, place: 'gpu:0' }, adapter: { name, software }, close }) as unknown as Opened;
