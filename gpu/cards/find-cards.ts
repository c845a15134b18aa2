import { existsSync } from 'node:fs';
import { join } from 'node:path';
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
