import type { DeviceRequest } from '../api/device-request.ts';
import type { Session } from '../api/session.ts';
import type { ParquetBackendName } from '../connectors/parquet/backend.ts';

interface MachineValues {
  readonly device: DeviceRequest;
  readonly deviceMemory?: number | undefined;
  readonly workers: number | undefined;
  readonly memoryBudget?: number | undefined;
  readonly parquetBackend?: ParquetBackendName | undefined;
  readonly fakeDevices?: number | undefined;
}

/** A session as the machine flags describe it. The engine is loaded here, when the flags and the output are known to be good. */
export async function openSession({ device, deviceMemory, workers, memoryBudget, parquetBackend, fakeDevices }: MachineValues, signal: AbortSignal): Promise<Session> {
  const { Session } = await import('../api/session.ts');
  return Session.create({ device, deviceMemory, workers, memoryBudget, parquetBackend, fakeDevices, signal });
}
