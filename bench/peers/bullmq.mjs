// bullmq.mjs SOCKET: BullMQ with 50 concurrent jobs, on the Redis server at this socket.
import { Queue, Worker } from 'bullmq'
import { answerRounds, inChunks, payload, Watch } from './rounds.mjs'

const QUEUE = 'mail'
const connection = { path: process.argv[2], maxRetriesPerRequest: null }
const queue = new Queue(QUEUE, { connection })
let watch

const worker = new Worker(QUEUE, async () => watch.start(), { connection, concurrency: 50, autorun: false })
worker.on('completed', () => watch.done())
worker.on('error', (error) => {
  throw error
})
await worker.waitUntilReady()
await worker.pause()
void worker.run()

async function round(n) {
  watch = new Watch(n)
  await inChunks(n, (m) => queue.addBulk(Array.from({ length: m }, () => ({ name: 'mail', data: payload }))))
  worker.resume()
  await watch.all
  await worker.pause()
  return watch.seconds
}

await answerRounds('bullmq', round)
