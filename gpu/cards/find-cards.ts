import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { namesIn, textOf } from '../probe/system-files.ts';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { UsageError } from '../../engine/errors.ts';

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
