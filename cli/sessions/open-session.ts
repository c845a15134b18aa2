import type { DeviceName } from '../../api/open-devices.ts';
import type { Dataset } from '../../api/dataset.ts';
import type { Session, SessionOptions } from '../../api/session.ts';

interface MachineValues {
  readonly device: DeviceName;
  readonly deviceMemory?: number | undefined;
  readonly workers: number | undefined;
  readonly memoryBudget?: number | undefined;
  readonly parquetBackend?: SessionOptions['parquetBackend'] | undefined;
}

/** A session as the machine flags describe it. The engine is loaded here, when the flags and the output are known to be good. */
export async function openSession({ device, deviceMemory, workers, memoryBudget, parquetBackend }: MachineValues, signal: AbortSignal): Promise<Session> {
  const { Session } = await import('../../api/session.ts');
  return Session.create({ device, deviceMemory, workers, memoryBudget, parquetBackend, signal });
}

/** Rows of a data set that is read as it is, by what its files say; undefined where only reading would tell (text, Arrow). */
export async function knownRows({ plan }: Dataset): Promise<number | undefined> {
  return plan.kind === 'source' ? (await plan.source.statistics?.())?.rows : undefined;
}
