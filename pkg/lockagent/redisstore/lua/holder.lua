-- holder.lua reads who holds a mutex; false: nobody, or it is a semaphore.

local holder = mutex and call('GET', lock)
