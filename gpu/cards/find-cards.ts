import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { UsageError } from '../../engine/errors.ts';
import type { Device } from '../../engine/run/device.ts';
import { namesIn, textOf } from '../probe/system-files.ts';

/** A graphics card that this process may open. */
export interface Card {
  /** On the PCI bus: "0000:06:00.0". */
  readonly address: string;
  /** As WebGPU spells it: "nvidia". */
  readonly vendor: string;
  /**
   * NUMA node of the processor socket that the card is attached to; absent where the system does not report
   * it.
   */
  readonly socket?: number;
}

/** Vendor names by PCI vendor number. */
const vendors: Readonly<Record<string, string>> = { '0x10de': 'nvidia', '0x1002': 'amd', '0x8086': 'intel' };

/**
 * The cards of one vendor, by ascending PCI address (the order of nvidia-smi). A container sees all cards of
 * its host on the bus, so only cards whose device files exist here count. Undefined where the system does not
 * list cards: everywhere but Linux.
 */
export function findCards(
  vendor: string,
  platform: NodeJS.Platform = process.platform,
  root = '/',
): readonly Card[] | undefined {
  if (platform !== 'linux') return undefined;
  const nvidia = join(root, 'proc/driver/nvidia/gpus');
  const bus = join(root, 'sys/bus/pci/devices');
  const open = (address: string) => {
    const minor = /^Device Minor:\s*(\d+)/m.exec(textOf(join(nvidia, address, 'information')))?.[1];
    if (minor !== undefined) return existsSync(join(root, `dev/nvidia${minor}`));
    return namesIn(join(bus, address, 'drm')).some(
      (node) => node.startsWith('renderD') && existsSync(join(root, 'dev/dri', node)),
    );
  };
  return [...new Set([...namesIn(nvidia), ...namesIn(bus)].map((address) => address.toLowerCase()))]
    .filter(open)
    .map((address) => {
      // The system reports -1 on machines with one socket.
      const socket = /^\d+$/.exec(textOf(join(bus, address, 'numa_node')).trim());
      return {
        address,
        vendor: existsSync(join(nvidia, address))
          ? 'nvidia'
          : (vendors[textOf(join(bus, address, 'vendor')).trim()] ?? 'unknown'),
        ...(socket ? { socket: Number(socket[0]) } : {}),
      };
    })
    .filter((card) => card.vendor === vendor)
    .sort((left, right) => (left.address < right.address ? -1 : 1));
}

/**
 * Bytes in use on each card, by all processes. If the system does not report them, throws UsageError that
 * names the missing program or file.
 */
export async function memoryUsed(cards: readonly Card[]): Promise<readonly number[]> {
  if (cards.every(({ vendor }) => vendor === 'nvidia')) return ofNvidia(cards);
  return Promise.all(cards.map(ofDriver));
}

async function ofNvidia(cards: readonly Card[]): Promise<readonly number[]> {
  const output = await promisify(execFile)('nvidia-smi', [
    '--query-gpu=pci.bus_id,memory.used',
    '--format=csv,noheader,nounits',
  ]).catch((cause: unknown) => {
    throw cannotIdentify('nvidia-smi, which reports the memory used on each card, does not run', cause);
  });
  return readNvidia(output.stdout, cards);
}

/** Lines such as "00000000:06:00.0, 524", in MiB. */
export function readNvidia(text: string, cards: readonly Card[]): readonly number[] {
  const used = new Map(
    text
      .split('\n')
      .map((line) => [
        line.split(',')[0].trim().toLowerCase().slice(-'0000:06:00.0'.length),
        Number(line.split(',')[1]) * 2 ** 20,
      ]),
  );
  return cards.map(({ address }) => {
    const bytes = used.get(address);
    if (bytes === undefined || !Number.isFinite(bytes))
      throw cannotIdentify(`nvidia-smi does not report the memory used on ${address}`);
    return bytes;
  });
}

/** For cards of other makers: reads a file that only the driver amdgpu provides. */
async function ofDriver({ address }: Card): Promise<number> {
  const file = `/sys/bus/pci/devices/${address}/mem_info_vram_used`;
  return Number(
    await readFile(file, 'utf8').catch((cause: unknown) =>
      Promise.reject(cannotIdentify(`${file}, which reports the memory used, is missing`, cause)),
    ),
  );
}

export function cannotIdentify(reason: string, cause?: unknown): UsageError {
  return new UsageError(`the GPUs of this machine cannot be distinguished: ${reason}`, {
    advice: 'Use device gpu, which takes the card that the system puts first',
    cause,
  });
}

/** The operations on real cards that this module needs; tests replace them. */
export interface CardMachine {
  /** Opens the card that the system selects for an address. */
  readonly open: (options: { readonly card: string }) => Promise<Device>;
  readonly memoryUsed: (cards: readonly Card[]) => Promise<readonly number[]>;
}

/**
 * The matrix that is allocated to find out which card was opened: 256 MiB. If the used memory of exactly one
 * card grows by at least half of that, it is the opened card. Half, because other processes may allocate and
 * free memory at the same time.
 */
const MARK = { rows: 1 << 16, columns: 1 << 10, stride: 1 << 10, contents: 'any' } as const;
const SEEN_BYTES = (MARK.rows * MARK.columns * 4) / 2;

/** Attempts for each card, since other processes may allocate or free memory during the measurement. */
const ATTEMPTS = 3;

/**
 * Finds, for each wanted card, the PCI address that opens it. That is not always its own address: Mesa 22's
 * device-select layer opens the last card whose address differs from the given one (a comparison is inverted
 * there). Of two cards it opens the other one; of four it can open only the last two. So each card is opened,
 * memory is allocated on it, and the card whose used memory grows is the opened one. Processes that start
 * together do this one after the other.
 *
 * `wanted`: indices in `cards`. Returns the address by index. Throws UsageError if no address opens a card.
 */
export function identifyCards(
  wanted: readonly number[],
  cards: readonly Card[],
  machine: CardMachine,
): Promise<ReadonlyMap<number, string>> {
  return oneAtATime('factorflow-gpus', () => allocateOnEach(wanted, cards, machine));
}

async function allocateOnEach(
  wanted: readonly number[],
  cards: readonly Card[],
  machine: CardMachine,
): Promise<ReadonlyMap<number, string>> {
  const addresses = new Map<number, string>();
  const candidates = [...wanted, ...cards.keys()].filter((number, at, all) => all.indexOf(number) === at);
  for (const number of Array.from({ length: ATTEMPTS }, () => candidates).flat()) {
    if (wanted.every((one) => addresses.has(one))) break;
    const { address } = cards[number];
    const opened = await openedCard(address, cards, machine);
    if (opened !== undefined && !addresses.has(opened)) addresses.set(opened, address);
  }
  const missing = wanted.filter((number) => !addresses.has(number));
  if (missing.length === 0) return addresses;
  throw cannotIdentify(
    'no address opened ' +
      `${missing.map((number) => `gpu:${number} (${cards[number].address})`).join(', ')}; that takes ` +
      "Mesa's device-select layer (Debian, Ubuntu: apt install mesa-vulkan-drivers). Version 22 opens only " +
      'the last two of several cards; Debian 12 has a newer one in bookworm-backports',
  );
}

/** The index of the card that is opened for an address; undefined if the measurement shows no single card. */
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

/**
 * Milliseconds between two attempts to get the lock, and milliseconds after which the work is done without
 * it.
 */
const PAUSE = 50;
const PATIENCE = 60_000;

/**
 * Does work while no other process of this Linux machine does work with the same name. The lock is an
 * abstract socket of that name: the kernel releases it when the process ends, even by a crash. Processes in
 * containers with their own networks do not see each other.
 */
export async function oneAtATime<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
  const until = performance.now() + PATIENCE;
  let held = await listening(name);
  while (held === undefined && performance.now() < until) {
    await setTimeout(PAUSE);
    held = await listening(name);
  }
  try {
    return await work();
  } finally {
    held?.close();
  }
}

/** Tries to get the lock. Returns the socket that holds it, or undefined if another process has it. */
function listening(name: string): Promise<Server | undefined> {
  return new Promise((done) => {
    const server = createServer((socket) => socket.destroy()).unref();
    server.once('error', () => done(undefined));
    server.listen(`\0${name}`, () => done(server));
  });
}
