import type { OpeningDevices } from '../../api/devices/open-devices.ts';
import type { DeviceRequest } from '../../api/devices/device-request.ts';
import type { Dataset } from '../../api/dataset.ts';
import type { CommandContext } from '../commands/command.ts';
import type { Session } from '../../api/session.ts';
import type { SessionOptions } from '../../api/session-options.ts';

interface MachineValues {
  readonly device: DeviceRequest;
  readonly deviceMemory?: number | undefined;
  readonly workers: number | undefined;
  readonly memoryBudget?: number | undefined;
  readonly spillDir?: string | undefined;
  readonly parquetBackend?: SessionOptions['parquetBackend'] | undefined;
  readonly fakeDevices?: number | undefined;
}

/** Options of the session that depend on the command. */
type SessionManner = Pick<SessionOptions, 'once' | 'oneVersion'> & { readonly opening?: OpeningDevices };

/** Opens a session from the machine flags. Loads the engine, so flags and output are checked before. */
export async function openSession(
  { device, deviceMemory, workers, memoryBudget, spillDir, parquetBackend, fakeDevices }: MachineValues,
  { signal, profile }: Pick<CommandContext, 'signal' | 'profile'>,
  manner: SessionManner = {},
): Promise<Session> {
  const { Session } = await import('../../api/session.ts');
  return Session.create({
    device,
    deviceMemory,
    workers,
    memoryBudget,
    spillDir,
    parquetBackend,
    profile,
    fakeDevices,
    oneVersion: true,
    ...manner,
    signal,
  });
}

/**
 * Number of rows from the metadata of the files; undefined for text and Arrow, and if an operator follows.
 */
export async function knownRows({ plan, session }: Dataset): Promise<number | undefined> {
  return plan.kind === 'source' ? (await plan.source.statistics?.(session.context()))?.rows : undefined;
}
