-- alive: is somebody there?
SELECT 1
