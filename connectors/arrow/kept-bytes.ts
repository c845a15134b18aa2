import { AsyncByteQueue } from 'apache-arrow';

/** A queue for apache-arrow's writers that keeps what is written until it is asked for. */
export class KeptBytes extends AsyncByteQueue {
  private kept: Uint8Array[] = [];

  override write(bytes: Uint8Array): void {
    this.kept.push(bytes);
  }

  take(): Uint8Array {
    const all = Buffer.concat(this.kept);
    this.kept = [];
    return all;
  }
}
