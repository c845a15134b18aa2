import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { namesIn, textOf } from '../probe/system-files.ts';

/** A graphics card that this process may open. */
export interface Card {
  /** On the PCI bus: "0000:06:00.0". */
  readonly address: string;
  /** As WebGPU spells it: "nvidia". */
  readonly vendor: string;
  /** The processor's socket that the card is at; absent where the system does not tell. */
  readonly socket?: number;
}

/** By the PCI bus's number for them. */
const vendors: Readonly<Record<string, string>> = { '0x10de': 'nvidia', '0x1002': 'amd', '0x8086': 'intel' };

/**
 * The cards of one vendor, by ascending PCI address, which is nvidia-smi's order too. A container sees the
 * cards of its host on the bus, so only those count whose device files are here. Undefined where the system
 * does not tell: on anything but Linux.
 *
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
      // -1 on machines of one socket.
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
