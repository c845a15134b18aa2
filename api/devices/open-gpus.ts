import { UsageError } from '../../engine/errors.ts';
import type { Device } from '../../engine/run/device.ts';
import type { Place } from '../../engine/plan/place.ts';
import { type Card, findCards, memoryUsed } from '../../gpu/cards/find-cards.ts';
import { GpuThread } from '../../gpu/gpu-thread.ts';
import { identifyCards } from '../../gpu/cards/identify-cards.ts';

/**
 * The part of GpuDevice that a session uses. GpuDevice itself would add WebGPU's types to the public
 * declarations, and not every program has these types.
 */
export type OpenedGpu = Device & { readonly adapter: { readonly name: string; readonly software: boolean } };

export interface OpenGpuOptions {
  readonly place?: Place;
  readonly memoryBytes?: number;
  /** PCI address of the card, if there are several. */
  readonly card?: string;
  /** See DeviceInfo. */
  readonly group?: number | undefined;
}

/** The functions that find and open GPUs; tests replace them. */
export interface GpuMachine {
  readonly open: (options: OpenGpuOptions) => Promise<OpenedGpu>;
  /** The cards of a vendor, in order; undefined if the system does not report them. */
  readonly findCards: (vendor: string) => readonly Card[] | undefined;
  readonly memoryUsed: (cards: readonly Card[]) => Promise<readonly number[]>;
}

export const gpusOfThisMachine: GpuMachine = {
  open: async (options) => {
    const thread = new GpuThread(options);
    // Imported while the GPU's thread opens the GPU, since most runs never need this module.
    const { openGpuDevice } = await import('../../gpu/open-gpu-device.ts');
    return openGpuDevice({ ...options, thread });
  },
  findCards,
  memoryUsed,
};

/** Opens the system's default GPU `count` times. */
export function openFirst(
  count: number,
  memoryBytes: number | undefined,
  machine: GpuMachine,
): Promise<OpenedGpu[]> {
  return openEach(
    Array.from({ length: count }, (_, number) => ({ place: `gpu:${number}`, memoryBytes })),
    machine,
  );
}

/**
 * Opens cards by number. Throws UsageError for a card that does not exist, or if cards cannot be
 * distinguished.
 */
export async function openCards(
  wanted: readonly number[],
  vendor: string,
  memoryBytes: number | undefined,
  machine: GpuMachine,
): Promise<OpenedGpu[]> {
  const only = wanted.length === 1 && wanted[0] === 0;
  const cards = machine.findCards(vendor);
  if (only && (cards === undefined || cards.length <= 1)) return openFirst(1, memoryBytes, machine);
  if (cards === undefined)
    throw new UsageError('GPUs can be chosen by number on Linux only', { advice: 'Use device gpu' });
  const missing = wanted.find((number) => number >= Math.max(1, cards.length));
  if (missing !== undefined) {
    const there =
      cards.length > 1 ? `${cards.length} GPUs, gpu:0 to gpu:${cards.length - 1}` : 'one GPU, gpu:0';
    throw new UsageError(`there is no gpu:${missing}: this machine shows ${there}`, {
      advice: 'A container sees the cards that it was given',
    });
  }
  const addresses = await identifyCards(wanted, cards, machine);
  return openEach(
    wanted.map((number) => ({
      place: `gpu:${number}`,
      memoryBytes,
      card: addresses.get(number),
      group: cards[number].socket,
    })),
    machine,
  );
}

/** Opens cards one after the other: an environment variable of the process selects the card. */
async function openEach(options: readonly OpenGpuOptions[], { open }: GpuMachine): Promise<OpenedGpu[]> {
  const opened: OpenedGpu[] = [];
  try {
    for (const one of options) opened.push(await open(one));
    return opened;
  } catch (error) {
    await Promise.allSettled(opened.map((gpu) => gpu.close()));
    throw error;
  }
}
