import type { Device } from '../../engine/run/device.ts';
import type { Card } from './find-cards.ts';
import { cannotTell } from './memory-used.ts';
import { oneAtATime } from './one-at-a-time.ts';

/** The means of telling cards apart; tests have others. */
export interface CardMachine {
  /** Opens the card that the system gives for an address. */
  readonly open: (options: { readonly card: string }) => Promise<Device>;
  readonly memoryUsed: (cards: readonly Card[]) => Promise<readonly number[]>;
}

/** A matrix of 256 MiB; half of that on one card alone is seen among what other processes do. */
const MARK = { rows: 1 << 16, columns: 1 << 10, stride: 1 << 10, contents: 'any' } as const;
const SEEN_BYTES = (MARK.rows * MARK.columns * 4) / 2;

/** Looks at each card, since memory that other processes take at the same time hides the mark. */
const LOOKS = 3;

/**
 * The address by which each of the wanted cards is opened. The layer that takes addresses has been seen to
 * give the other card of two, so each is opened, some of its memory is taken, and the card on which that is
 * missing is the one. Processes that start together do so one after the other. Throws UsageError.
 *
 */
export function tellApart(
  wanted: readonly number[],
  cards: readonly Card[],
  machine: CardMachine,
): Promise<ReadonlyMap<number, string>> {
  return oneAtATime('factorflow-gpus', () => marked(wanted, cards, machine));
}

async function marked(
  wanted: readonly number[],
  cards: readonly Card[],
  machine: CardMachine,
): Promise<ReadonlyMap<number, string>> {
  const addresses = new Map<number, string>();
  const candidates = [...wanted, ...cards.keys()].filter((number, at, all) => all.indexOf(number) === at);
  for (const number of Array.from({ length: LOOKS }, () => candidates).flat()) {
    if (wanted.every((one) => addresses.has(one))) break;
    const { address } = cards[number];
    const opened = await openedCard(address, cards, machine);
    if (opened !== undefined && !addresses.has(opened)) addresses.set(opened, address);
  }
  const missing = wanted.filter((number) => !addresses.has(number));
  if (missing.length === 0) return addresses;
  throw cannotTell(
    `no address opened ${missing.map((number) => `gpu:${number} (${cards[number].address})`).join(', ')}; that takes Mesa's device-select layer (Debian, Ubuntu: apt install mesa-vulkan-drivers)`,
  );
}

/** The number of the card that is opened for an address; undefined where that is not seen. */
async function openedCard(
  address: string,
  cards: readonly Card[],
  { open, memoryUsed }: CardMachine,
): Promise<number | undefined> {
  const device = await open({ card: address });
  try {
    const before = await memoryUsed(cards);
    const mark = { name: 'mark', partition: 0, version: 0 };
    device.allocate(mark, MARK);
    await device.run({ kernel: 'upload', inputs: { data: mark }, outputs: {}, params: {} });
    const after = await memoryUsed(cards);
    const grown = [...cards.keys()].filter((number) => after[number] - before[number] >= SEEN_BYTES);
    return grown.length === 1 ? grown[0] : undefined;
  } finally {
    await device.close();
  }
}
