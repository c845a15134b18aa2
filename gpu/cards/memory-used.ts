import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { UsageError } from '../../engine/errors.ts';
import type { Card } from './find-cards.ts';

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
