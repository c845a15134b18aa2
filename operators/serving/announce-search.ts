import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { announceKernels } from '../tasks/announce-kernels.ts';

/**
 * Makes a device with its own memory compile the kernels of a search while the host still prepares the search
 * and uploads its inputs. Nothing waits for this. If it fails, the search compiles its kernels itself.
 */
export function announceSearch(
  search: 'top-n' | 'rank-listed',
  excluding: boolean,
  { place, ownMemory }: DeviceInfo,
  ctx: ExecutionContext,
): void {
  if (!ownMemory) return;
  announceKernels('compile-search', { search, excluding }, place, ctx).catch(() => undefined);
}
